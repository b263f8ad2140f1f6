-- How many documents contain each keyword, by segment: memories that the same readers see. `mesh_apply` keeps these counts, and holds
-- the locks of the partitions meanwhile. A memory without keywords is not a document.

-- rows ([{kind, id, partition}, …]), sign: adds the stored memories among the rows to the counts, or subtracts them. Of the memories that
-- are visible in all sessions, the segment has no session.
CREATE OR REPLACE FUNCTION mesh_count_keywords(rows jsonb, sign int) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $sql$
BEGIN
  WITH given AS (
    SELECT t.tenant, t.partition, t.user_id, t.agent_id, t.memory_type, t.reach, t.project, t.id, t.keywords,
      CASE WHEN coalesce(t.memory_type, 'global') = ANY ('{global,reflection,lesson,agent}') AND coalesce(t.reach, 'global') = ANY ('{global,agent}')
        THEN NULL ELSE t.session_id END AS session_id
    FROM memories t JOIN jsonb_to_recordset(rows) AS r(kind text, id text, partition text) ON r.kind = 'memory' AND r.id = t.id AND r.partition = t.partition
    WHERE t.kind = 'memory' AND cardinality(t.keywords) > 0
  ), named AS MATERIALIZED (
    SELECT *, md5(json_build_array(partition, user_id, agent_id, session_id, memory_type, reach, project)::text) AS segment FROM given
  ), segments AS (
    INSERT INTO keyword_segments AS s (tenant, segment, partition, user_id, agent_id, session_id, memory_type, reach, project, documents, length)
    SELECT tenant, segment, partition, user_id, agent_id, session_id, memory_type, reach, project, sign * count(*), sign * sum(cardinality(keywords))
    FROM named GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
    ON CONFLICT (tenant, segment) DO UPDATE SET documents = s.documents + excluded.documents, length = s.length + excluded.length
  )
  INSERT INTO keyword_counts AS c (tenant, segment, partition, word, documents)
  SELECT tenant, segment, partition, word, sign * count(*) FROM (SELECT DISTINCT tenant, segment, partition, id, word FROM named, unnest(keywords) word) each
  GROUP BY 1, 2, 3, 4 ON CONFLICT (tenant, segment, word) DO UPDATE SET documents = c.documents + excluded.documents;
  IF sign < 0 THEN
    DELETE FROM keyword_counts WHERE documents <= 0 AND partition IN (SELECT one ->> 'partition' FROM jsonb_array_elements(rows) one);
    DELETE FROM keyword_segments WHERE documents <= 0 AND partition IN (SELECT one ->> 'partition' FROM jsonb_array_elements(rows) one);
  END IF;
END $sql$;

-- visible (a condition), by_segment: the numbers of visible documents and of their keywords, and how many contain each word. They come
-- from the counts if the condition is true of all documents of a segment or of none; else the documents are counted.
CREATE OR REPLACE FUNCTION mesh_corpus(payload jsonb, words text[], OUT documents bigint, OUT length bigint, OUT frequencies bigint[])
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  counting text := 'WITH seen AS MATERIALIZED (SELECT 1 AS documents, cardinality(t.keywords) AS length, t.keywords FROM %s AND cardinality(t.keywords) > 0), '
    'counted AS MATERIALIZED (SELECT word, (SELECT count(*) FROM seen WHERE word = ANY (keywords)) AS times FROM unnest($1) word) ';
  adding text := 'WITH seen AS MATERIALIZED (SELECT t.* FROM keyword_segments t WHERE %s), '
    'counted AS MATERIALIZED (SELECT c.word, sum(c.documents)::bigint AS times FROM seen JOIN keyword_counts c ON c.tenant = seen.tenant AND c.segment = seen.segment '
    '  WHERE c.word = ANY ($1) GROUP BY c.word) ';
BEGIN
  EXECUTE CASE WHEN payload -> 'by_segment' = 'true' THEN format(adding, mesh_condition('memory', payload -> 'visible'))
    ELSE format(counting, mesh_source('memory', payload -> 'visible')) END ||
    'SELECT coalesce(sum(documents), 0), coalesce(sum(length), 0), '
    '  ARRAY(SELECT coalesce(times, 0) FROM unnest($1) WITH ORDINALITY one(word, at) LEFT JOIN counted USING (word) ORDER BY at) FROM seen'
    INTO documents, length, frequencies USING words;
END $sql$;

-- tokens (each once), weights (their counts in the query), visible, by_segment, where, limit, k1, b: the numbers of visible documents and
-- of their keywords, how many contain each token, and of those that `where` selects the id, the length and how often they contain each
-- token: of all, or of those among which the best are. Documents with a rare token are found first. If enough of them have a higher
-- score than the other tokens together can give, the documents that only contain the others are not read.
CREATE OR REPLACE FUNCTION mesh_matching(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  tokens text[] := mesh_texts(payload -> 'tokens');
  corpus record;
  limits float8[];
  rare text[];
  rest float8;
  found json;
  better bigint;
BEGIN
  PERFORM mesh_check(payload);
  SELECT * INTO corpus FROM mesh_corpus(payload, tokens);
  SELECT array_agg((payload -> 'weights' ->> (at - 1)::int)::float8 * ((payload ->> 'k1')::float8 + 1) * ln(1 + (corpus.documents - times + 0.5) / (times + 0.5)) ORDER BY at)
    INTO limits FROM unnest(corpus.frequencies) WITH ORDINALITY one(times, at);
  SELECT array_agg(token) FILTER (WHERE is_rare), sum(score) FILTER (WHERE NOT is_rare) INTO rare, rest FROM (
    SELECT token, score, sum(times) OVER (ORDER BY times, at) <= <few> OR row_number() OVER (ORDER BY times, at) = 1 AS is_rare
    FROM unnest(tokens, corpus.frequencies, limits) WITH ORDINALITY one(token, times, score, at) WHERE times > 0) each;
  FOR attempt IN 1..2 LOOP
    EXECUTE format(
      'WITH hits AS MATERIALIZED (SELECT t.id, cardinality(t.keywords) AS length, '
      '  ARRAY(SELECT cardinality(array_positions(t.keywords, token)) FROM unnest($1) WITH ORDINALITY one(token, at) ORDER BY at) AS times '
      '  FROM %s AND (%s) AND t.keywords && $2), '
      'scored AS (SELECT (SELECT sum(score * n / (n + $4 * (1 - $5 + $5 * hits.length * $6))) FROM unnest(hits.times, $3) one(n, score)) AS score FROM hits) '
      'SELECT (SELECT coalesce(json_agg(json_build_array(id, length, times)), ''[]'') FROM hits), (SELECT count(*) FROM scored WHERE score > $7)',
      mesh_source('memory', payload -> 'visible'), mesh_condition('memory', payload -> 'where')) INTO found, better
      USING tokens, coalesce(rare, tokens), limits, (payload ->> 'k1')::float8, (payload ->> 'b')::float8, corpus.documents::float8 / greatest(corpus.length, 1), rest * 1.000001;
    EXIT WHEN rest IS NULL OR better >= (payload ->> 'limit')::bigint;
    rare := tokens;
    rest := NULL;
  END LOOP;
  RETURN json_build_object('documents', corpus.documents, 'length', corpus.length, 'frequencies', corpus.frequencies, 'found', found);
END $sql$;
