-- Which documents contain each keyword, and their segments: memories that are equal in the columns of `tables.COLUMNS`. `mesh_apply`
-- keeps both, and holds the locks of the partitions meanwhile. A memory without keywords is not a document.

-- The numbers of the segments of the ids of a list, of which one stands for all if they are the same.
CREATE OR REPLACE FUNCTION mesh_unpacked(segments int[], ids text[]) RETURNS int[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $sql$
  SELECT CASE WHEN cardinality(segments) = 1 THEN array_fill(segments[1], ARRAY[cardinality(ids)]) ELSE segments END
$sql$;

-- rows ([{kind, id, partition, tenant}, …]), sign: adds the stored memories among the rows to the segments and lists, or takes them away.
CREATE OR REPLACE FUNCTION mesh_count_keywords(rows jsonb, sign int) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $sql$
DECLARE
  empty jsonb;
  taken jsonb;
BEGIN
  WITH given AS (
    SELECT t.tenant, t.partition, <segment_columns>, t.model, t.dimension, t.number AS place, t.id, coalesce(t.keywords, '{}') AS keywords
    FROM (SELECT r.id, r.partition, r.tenant FROM jsonb_to_recordset(rows) AS r(kind text, id text, partition text, tenant text) WHERE r.kind = 'memory' OFFSET 0) r
    CROSS JOIN LATERAL (SELECT * FROM memories m WHERE m.tenant = r.tenant AND m.kind = 'memory' AND m.id = r.id OFFSET 0) t
    WHERE t.partition = r.partition
  ), named AS MATERIALIZED (
    SELECT *, md5(json_build_array(partition, <segment_columns>, model, dimension)::text)::uuid AS segment, row_number() OVER (ORDER BY place, id) AS at FROM given t
  ), segments AS (
    INSERT INTO keyword_segments AS s (tenant, segment, partition, number, <segment_names>, model, dimension, memories, documents, length)
    SELECT tenant, segment, partition, row_number() OVER (PARTITION BY partition) + coalesce((SELECT k.number FROM keyword_segments k WHERE k.partition = t.partition ORDER BY k.number DESC LIMIT 1), 0),
      <segment_columns>, model, dimension, sign * count(*), sign * count(*) FILTER (WHERE keywords <> '{}'), sign * sum(cardinality(keywords))
    FROM named t GROUP BY tenant, segment, partition, <segment_columns>, model, dimension
    ON CONFLICT (tenant, partition, segment) DO UPDATE SET memories = s.memories + excluded.memories, documents = s.documents + excluded.documents, length = s.length + excluded.length
    RETURNING s.tenant, s.partition, s.segment, s.number, s.memories
  ), numbers AS MATERIALIZED (
    SELECT jsonb_object_agg(segment, number) AS of_segments FROM segments
  ), words AS MATERIALIZED (  -- the names of segments contain that of their partition
    SELECT n.tenant, n.partition, word, n.at, n.id, (of_segments ->> n.segment::text)::int AS segment FROM named n, numbers, LATERAL (SELECT DISTINCT word FROM unnest(n.keywords) word) each WHERE sign > 0
  ), lasts AS MATERIALIZED (  -- of each word the last list, which gets the next ids until it is full
    SELECT w.*, coalesce(l.chunk, 0) AS chunk, coalesce(l.size, 0) AS size FROM (SELECT DISTINCT tenant, partition, word FROM words) w LEFT JOIN LATERAL
      (SELECT k.chunk, cardinality(k.ids) AS size FROM keyword_lists k WHERE k.tenant = w.tenant AND k.partition = w.partition AND k.word = w.word ORDER BY k.chunk DESC LIMIT 1) l ON true
  ), placed AS (
    SELECT w.*, l.chunk + (l.size + row_number() OVER (PARTITION BY w.word, w.partition, w.tenant ORDER BY w.at) - 1) / <listed> AS chunk
    FROM words w JOIN lasts l ON l.tenant = w.tenant AND l.partition = w.partition AND l.word = w.word
  ), listed AS (
    INSERT INTO keyword_lists AS l (tenant, partition, word, chunk, ids, segments)
    SELECT tenant, partition, word, chunk, array_agg(id ORDER BY at), CASE WHEN min(segment) = max(segment) THEN ARRAY[min(segment)] ELSE array_agg(segment ORDER BY at) END FROM placed GROUP BY word, partition, tenant, chunk
    ON CONFLICT (tenant, partition, word, chunk) DO UPDATE SET ids = l.ids || excluded.ids,
      segments = CASE WHEN cardinality(l.segments) = 1 AND l.segments = excluded.segments THEN l.segments ELSE mesh_unpacked(l.segments, l.ids) || mesh_unpacked(excluded.segments, excluded.ids) END
  )
  SELECT (SELECT coalesce(jsonb_agg(to_jsonb(segments)) FILTER (WHERE memories <= 0), '[]') FROM segments),
    (SELECT jsonb_agg(jsonb_build_object('tenant', tenant, 'partition', partition, 'id', id, 'words', keywords)) FROM named WHERE sign < 0) INTO empty, taken;
  IF taken IS NOT NULL THEN
    PERFORM mesh_delete_words(taken, empty);
  END IF;
END $sql$;

-- The beginning of a query: `seen` has the segments that meet a condition, with further columns, and `found` how many of their documents
-- contain each of the words $1.
CREATE OR REPLACE FUNCTION mesh_segments(given jsonb, columns text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $sql$
  SELECT format('WITH seen AS MATERIALIZED (SELECT t.tenant, t.number, t.partition, t.session_id, t.memories, t.documents, t.length%s FROM keyword_segments t WHERE %s), '
    'found AS MATERIALIZED (SELECT s.*, c.word, c.times FROM (SELECT DISTINCT tenant, partition FROM seen) place, unnest($1) one CROSS JOIN LATERAL '
    '  (SELECT l.tenant, l.partition, l.word, number, sum(CASE WHEN cardinality(l.segments) = 1 THEN cardinality(l.ids) ELSE 1 END) AS times '
    '    FROM keyword_lists l, unnest(l.segments) number WHERE l.tenant = place.tenant AND l.partition = place.partition AND l.word = one GROUP BY 1, 2, 3, 4 OFFSET 0) c '
    '  JOIN seen s ON s.tenant = c.tenant AND s.partition = c.partition AND s.number = c.number) ', columns, mesh_condition('memory', given))
$sql$;

-- visible (a condition), by_segment: the numbers of visible documents and of their keywords, and how many contain each word. They come
-- from the counts if the condition is true of all documents of a segment or of none; else the documents are counted.
CREATE OR REPLACE FUNCTION mesh_corpus(payload jsonb, words text[], OUT documents bigint, OUT length bigint, OUT frequencies bigint[])
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET enable_nestloop = off AS $sql$
DECLARE
  counting text := 'WITH seen AS MATERIALIZED (SELECT 1 AS documents, cardinality(t.keywords) AS length, t.keywords FROM %s AND cardinality(t.keywords) > 0), '
    'counted AS MATERIALIZED (SELECT word, (SELECT count(*) FROM seen WHERE word = ANY (keywords)) AS times FROM unnest($1) word) ';
BEGIN
  EXECUTE CASE WHEN payload -> 'by_segment' = 'true' THEN mesh_segments(payload -> 'visible', '') || ', counted AS (SELECT word, sum(times)::bigint AS times FROM found GROUP BY word) '
    ELSE format(counting, mesh_source('memory', payload -> 'visible')) END ||
    'SELECT coalesce(sum(documents), 0), coalesce(sum(length), 0), '
    '  ARRAY(SELECT coalesce(times, 0) FROM unnest($1) WITH ORDINALITY one(word, at) LEFT JOIN counted USING (word) ORDER BY at) FROM seen'
    INTO documents, length, frequencies USING words;
END $sql$;

-- partitions?, words (an expression): a query of the tenant, the id and the word of each memory that contains one of the words. Of named
-- partitions it reads the lists; otherwise it reads all memories.
CREATE OR REPLACE FUNCTION mesh_posted(payload jsonb, words text) RETURNS text LANGUAGE sql STABLE SET search_path FROM CURRENT AS $sql$
  SELECT CASE WHEN jsonb_typeof(payload -> 'partitions') = 'array' THEN
    format('SELECT p.* FROM unnest(%L::text[]) place CROSS JOIN LATERAL (SELECT mesh_tenant(place) AS tenant OFFSET 0) owner, unnest(%s) one CROSS JOIN LATERAL '
      '(SELECT l.tenant, id, l.word FROM keyword_lists l, unnest(l.ids) id WHERE l.tenant = owner.tenant AND l.partition = place AND l.word = one OFFSET 0) p', mesh_texts(payload -> 'partitions'), words)
    ELSE format('SELECT DISTINCT t.tenant, t.id, word FROM memories t, unnest(t.keywords) word WHERE word = ANY (%s)', words) END
$sql$;

-- partitions?, ids (an expression): a query of the tenant and the id of each of these memories.
CREATE OR REPLACE FUNCTION mesh_named(payload jsonb, ids text) RETURNS text LANGUAGE sql STABLE SET search_path FROM CURRENT AS $sql$
  SELECT CASE WHEN jsonb_typeof(payload -> 'partitions') = 'array' THEN
    format('SELECT owner.tenant, id FROM (SELECT DISTINCT mesh_tenant(place) AS tenant FROM unnest(%L::text[]) place OFFSET 0) owner, unnest(%s) id', mesh_texts(payload -> 'partitions'), ids)
    ELSE format('SELECT t.tenant, t.id FROM memories t WHERE t.kind = ''memory'' AND t.id = ANY (%s)', ids) END
$sql$;

-- A condition, and a query of tenants and ids: the memories `t` among these that meet the condition. Each is looked up by its key, also
-- before the server has statistics of the tables: plans that guess compared every memory with every id.
CREATE OR REPLACE FUNCTION mesh_looked_up(given jsonb, named text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $sql$
  SELECT format('(SELECT DISTINCT tenant, id FROM (%s) each OFFSET 0) named CROSS JOIN LATERAL (SELECT * FROM memories m WHERE m.tenant = named.tenant AND m.kind = ''memory'' AND m.id = named.id OFFSET 0) t '
    'WHERE (%s)', named, mesh_condition('memory', given))
$sql$;

-- tokens (each once), weights (their counts in the query), visible, by_segment, partitions?, where, limit, k1, b, corpus? and counts? (as `mesh_statistics` returns them): the numbers of visible documents and
-- of their keywords, how many contain each token, how many documents were read, and of the best that `where` selects the id, the length and how often
-- they contain each token. Documents with a rare token are found first. If enough of them have a higher
-- score than the other tokens together can give, the documents that only contain the others are not read.
CREATE OR REPLACE FUNCTION mesh_matching(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET work_mem = '64MB' AS $sql$
DECLARE
  tokens text[] := mesh_texts(payload -> 'tokens');
  corpus record;
  limits float8[];
  rare text[];
  rest float8;
  found json;
  read bigint;
  better bigint;
  source text := mesh_looked_up(payload -> 'visible', mesh_posted(payload, '$2'));
BEGIN
  PERFORM mesh_check(payload);
  IF payload ? 'corpus' THEN
    SELECT (payload #>> '{corpus,0}')::bigint AS documents, (payload #>> '{corpus,1}')::bigint AS length,
      ARRAY(SELECT coalesce((payload -> 'counts' ->> token)::bigint, 0) FROM unnest(tokens) WITH ORDINALITY one(token, at) ORDER BY at) AS frequencies INTO corpus;
  ELSE
    SELECT * INTO corpus FROM mesh_corpus(payload, tokens);
  END IF;
  SELECT array_agg((payload -> 'weights' ->> (at - 1)::int)::float8 * ((payload ->> 'k1')::float8 + 1) * ln(1 + (corpus.documents - times + 0.5) / (times + 0.5)) ORDER BY at)
    INTO limits FROM unnest(corpus.frequencies) WITH ORDINALITY one(times, at);
  SELECT array_agg(token) FILTER (WHERE is_rare), sum(score) FILTER (WHERE NOT is_rare) INTO rare, rest FROM (
    SELECT token, score, sum(times) OVER (ORDER BY times, at) <= <few> OR row_number() OVER (ORDER BY times, at) = 1 AS is_rare
    FROM unnest(tokens, corpus.frequencies, limits) WITH ORDINALITY one(token, times, score, at) WHERE times > 0) each;
  FOR attempt IN 1..2 LOOP
    -- Words of many documents: to read all documents in order takes less time than to look each of these up.
    IF jsonb_typeof(payload -> 'partitions') IS DISTINCT FROM 'array' OR corpus.documents <
      (SELECT 4 * sum(times) FROM unnest(tokens, corpus.frequencies) one(token, times) WHERE rare IS NULL OR token = ANY (rare)) THEN
      source := mesh_source('memory', payload -> 'visible') || ' AND t.keywords && $2';
    END IF;
    -- The caller computes the scores again, in an order that is the same for every store: they may differ in the last digits.
    EXECUTE format(
      'WITH hits AS MATERIALIZED (SELECT t.id, cardinality(t.keywords) AS length, ARRAY(SELECT cardinality(array_positions(t.keywords, token)) FROM unnest($1) token) AS times '
      '  FROM %s AND (%s)), '
      'scored AS MATERIALIZED (SELECT *, (SELECT sum(score * n / (n + $4 * (1 - $5 + $5 * hits.length * $6))) FROM unnest(hits.times, $3) one(n, score)) AS score FROM hits), '
      'last AS (SELECT score FROM scored ORDER BY score DESC OFFSET greatest($8 - 1, 0) LIMIT 1) '
      'SELECT (SELECT coalesce(json_agg(json_build_array(id, length, times) ORDER BY score DESC), ''[]'') FROM scored WHERE score >= coalesce((SELECT score FROM last), 0) * (1 - 1e-9)), '
      '  count(*), count(*) FILTER (WHERE score > $7) FROM scored',
      source, mesh_condition('memory', payload -> 'where')) INTO found, read, better
      USING tokens, coalesce(rare, tokens), limits, (payload ->> 'k1')::float8, (payload ->> 'b')::float8, corpus.documents::float8 / greatest(corpus.length, 1), rest * 1.000001,
        (payload ->> 'limit')::bigint;
    EXIT WHEN rest IS NULL OR better >= (payload ->> 'limit')::bigint;
    rare := tokens;
    rest := NULL;
  END LOOP;
  RETURN json_build_object('documents', corpus.documents, 'length', corpus.length, 'frequencies', corpus.frequencies, 'read', read, 'found', found);
END $sql$;
