-- What a search in the engine asks: the methods of `core.search.candidates.CandidateSource`, which defines the answers.

-- visible, with_status, readable, allowed (conditions), by_segment, is_allowed_by_segment, words, model?, dimension?: counts of memories and words.
-- They come from the counts of segments if the conditions are true of all memories of a segment or of none; else the memories are counted.
CREATE OR REPLACE FUNCTION mesh_statistics(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET work_mem = '64MB' AS $sql$
DECLARE
  comparable text := mesh_comparable(payload);
  words text[] := mesh_texts(payload -> 'words');
  corpus record;
  answer json;
BEGIN
  PERFORM mesh_check(payload);
  IF payload -> 'by_segment' = 'true' THEN
    RETURN mesh_segment_statistics(payload, words);
  END IF;
  SELECT * INTO corpus FROM mesh_corpus(payload, words);
  EXECUTE format(
    'WITH seen AS MATERIALIZED (SELECT t.id, CASE WHEN t.session_id IS NULL THEN t.id ELSE t.partition END AS place, t.session_id, '
    '  coalesce(cardinality(t.keywords), 0) AS length, (%2$s) IS TRUE AS has_status, (%3$s) IS TRUE AS is_readable, (%4$s) IS TRUE AS is_allowed, '
    '  (%4$s) IS TRUE AND ((%5$s) IS TRUE OR EXISTS (SELECT 1 FROM records p WHERE p.kind = ''passage'' AND p.ref = t.id AND p.partition = t.partition AND %6$s)) AS has_vector, '
    '  CASE WHEN (%3$s) THEN ARRAY(SELECT word FROM unnest($1) word WHERE word = ANY (t.keywords)) END AS words FROM %1$s), '
    'sessions AS (SELECT sum(length) AS length FROM seen WHERE is_readable GROUP BY place, session_id) '
    'SELECT json_build_object(''numbers'', (SELECT json_build_object(''visible'', count(*), ''with_status'', count(*) FILTER (WHERE has_status), '
    '    ''readable'', count(*) FILTER (WHERE is_readable), ''allowed'', count(*) FILTER (WHERE is_allowed), ''with_vector'', count(*) FILTER (WHERE has_vector)) FROM seen), '
    '  ''corpus'', json_build_array($2, $3), ''counts'', (SELECT json_object_agg(word, times) FROM unnest($1, $4) one(word, times) WHERE times > 0), '
    '  ''sessions'', (SELECT json_build_array(count(*) FILTER (WHERE length > 0), coalesce(sum(length), 0)) FROM sessions), '
    '  ''session_counts'', (SELECT json_object_agg(word, times) FROM (SELECT word, count(*) AS times FROM '
    '    (SELECT DISTINCT place, session_id, word FROM seen, unnest(words) word WHERE is_readable) each GROUP BY word) counted))',
    mesh_source('memory', payload -> 'visible'), mesh_condition('memory', payload -> 'with_status'), mesh_condition('memory', payload -> 'readable'),
    mesh_condition('memory', payload -> 'allowed'), format(comparable, 't'), format(comparable, 'p')) INTO answer USING words, corpus.documents, corpus.length, corpus.frequencies;
  RETURN answer;
END $sql$;

-- A memory counts as one with a vector if it has one itself, or if one of its passages has. The first ones are counted by segment.
CREATE OR REPLACE FUNCTION mesh_segment_statistics(payload jsonb, words text[]) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET enable_nestloop = off AS $sql$
DECLARE
  comparable text := mesh_comparable(payload);
  is_allowed text := CASE WHEN payload -> 'is_allowed_by_segment' = 'true' THEN mesh_condition('memory', payload -> 'allowed') ELSE 'false' END;
  numbers json;
  rest json;
  allowed bigint;
  compared bigint;
BEGIN
  EXECUTE mesh_segments(payload -> 'visible', format(', (%s) IS TRUE AS has_status, (%s) IS TRUE AS is_readable, (%s) IS TRUE AS is_allowed, (%s) IS TRUE AS is_comparable',
    mesh_condition('memory', payload -> 'with_status'), mesh_condition('memory', payload -> 'readable'), is_allowed, format(comparable, 't'))) ||
    ', sessions AS (SELECT sum(length) AS length FROM seen WHERE is_readable AND session_id IS NOT NULL GROUP BY partition, session_id), '
    'of_sessions AS (SELECT word, count(*) AS times FROM (SELECT DISTINCT partition, session_id, word FROM found WHERE is_readable AND session_id IS NOT NULL) each GROUP BY word '
    '  UNION ALL SELECT word, sum(times) FROM found WHERE is_readable AND session_id IS NULL GROUP BY word) '
    'SELECT json_build_object(''corpus'', json_build_array(coalesce(sum(documents), 0), coalesce(sum(length), 0)), '
    '    ''counts'', (SELECT json_object_agg(word, times) FROM (SELECT word, sum(times) AS times FROM found GROUP BY word) each WHERE times > 0), '
    '    ''sessions'', json_build_array((SELECT count(*) FROM sessions WHERE length > 0) + coalesce(sum(documents) FILTER (WHERE is_readable AND session_id IS NULL), 0), '
    '      coalesce(sum(length) FILTER (WHERE is_readable), 0)), '
    '    ''session_counts'', (SELECT json_object_agg(word, times) FROM (SELECT word, sum(times) AS times FROM of_sessions GROUP BY word) each WHERE times > 0)), '
    '  json_build_object(''visible'', coalesce(sum(memories), 0), ''with_status'', coalesce(sum(memories) FILTER (WHERE has_status), 0), '
    '    ''readable'', coalesce(sum(memories) FILTER (WHERE is_readable), 0)), '
    '  coalesce(sum(memories) FILTER (WHERE is_allowed), 0), coalesce(sum(memories) FILTER (WHERE is_allowed AND is_comparable), 0) FROM seen'
    INTO rest, numbers, allowed, compared USING words;
  IF payload -> 'is_allowed_by_segment' IS DISTINCT FROM 'true' THEN
    EXECUTE format('SELECT count(*), count(*) FILTER (WHERE %s) FROM %s AND (%s)', format(comparable, 't'), mesh_source('memory', payload -> 'visible'),
      mesh_condition('memory', payload -> 'allowed')) INTO allowed, compared;
  END IF;
  IF compared < allowed AND payload ->> 'model' IS NOT NULL THEN
    EXECUTE format('SELECT $1 + count(*) FROM %s AND (%s) AND (%s) IS NOT TRUE AND t.id IN '
      '(SELECT p.ref FROM records p WHERE p.kind = ''passage'' AND p.partition = t.partition AND %s)', mesh_source('memory', payload -> 'visible'),
      mesh_condition('memory', payload -> 'allowed'), format(comparable, 't'), format(comparable, 'p')) INTO compared USING compared;
  END IF;
  RETURN json_build_object('numbers', numbers::jsonb || jsonb_build_object('allowed', allowed, 'with_vector', compared),
    'corpus', rest -> 'corpus', 'counts', rest -> 'counts', 'sessions', rest -> 'sessions', 'session_counts', rest -> 'session_counts');
END $sql$;

-- The test that a vector of the table %1$s has the model and the dimension of the query.
CREATE OR REPLACE FUNCTION mesh_comparable(payload jsonb) RETURNS text LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $sql$
  SELECT CASE WHEN payload ->> 'model' IS NULL THEN 'false'
    ELSE format('%%1$s.model = %s AND %%1$s.dimension = %s', replace(quote_literal(payload ->> 'model'), '%', '%%'), (payload ->> 'dimension')::int) END
$sql$;

-- where, by_segment, partitions?, words: how many memories contain each word.
CREATE OR REPLACE FUNCTION mesh_count_words(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  answer json;
BEGIN
  PERFORM mesh_check(payload);
  IF payload -> 'by_segment' = 'true' THEN
    RETURN (SELECT json_object_agg(word, times) FROM mesh_corpus(jsonb_build_object('by_segment', true, 'visible', payload -> 'where'), mesh_texts(payload -> 'words')) corpus,
      unnest(mesh_texts(payload -> 'words'), corpus.frequencies) one(word, times) WHERE times > 0);
  END IF;
  EXECUTE format('SELECT json_object_agg(word, times) FROM (SELECT word, count(*) AS times FROM '
    '(SELECT t.tenant, t.id FROM %s) t JOIN (%s) posted USING (tenant, id) GROUP BY word) counted',
    mesh_source('memory', payload -> 'where'), mesh_posted(payload, '$1')) INTO answer USING mesh_texts(payload -> 'words');
  RETURN answer;
END $sql$;

-- where, by_segment: each partition and speaker.
CREATE OR REPLACE FUNCTION mesh_speakers(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  answer json;
  source text := CASE WHEN payload -> 'by_segment' = 'true' THEN format('keyword_segments t WHERE (%s)', mesh_condition('memory', payload -> 'where')) ELSE mesh_source('memory', payload -> 'where') END;
BEGIN
  PERFORM mesh_check(payload);
  EXECUTE format('SELECT json_agg(json_build_array(partition, speaker)) FROM (SELECT DISTINCT t.partition, t.speaker FROM %s AND t.speaker IS NOT NULL) each', source) INTO answer;
  RETURN answer;
END $sql$;

-- model?, dimension?: whether the caller sees a passage with a vector of the model and the dimension.
CREATE OR REPLACE FUNCTION mesh_has_passages(payload jsonb) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  answer boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT 1 FROM records t WHERE t.kind = ''passage'' AND t.ref IS NOT NULL AND %s)', format(mesh_comparable(payload), 't')) INTO answer;
  RETURN answer;
END $sql$;

-- What `mesh_statistics`, `mesh_matching` and `mesh_nearest` take, and steps: the pool of a search. The first row has counts and the totals of sessions in `facts`. Then follow
-- the best by keywords, the best by vectors, and up to `steps` memories on each side of each in its session: the partition, the place in its session and
-- whether it meets the caller's filter in `facts`, and what an index in memory needs of it. At last follow their passages.
CREATE OR REPLACE FUNCTION mesh_search(payload jsonb) RETURNS TABLE (part text, facts text, <indexed_types>) LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET work_mem = '64MB' AS $sql$
#variable_conflict use_column
DECLARE
  statistics CONSTANT jsonb := mesh_statistics(payload);
  asked CONSTANT jsonb := payload || jsonb_build_object('kind', 'memory', 'where', payload -> 'allowed', 'corpus', statistics -> 'corpus', 'counts', statistics -> 'counts', 'count', statistics #> '{numbers,with_vector}');
  by_words CONSTANT text[] := ARRAY(SELECT one ->> 0 FROM json_array_elements(mesh_matching(asked) -> 'found') WITH ORDINALITY found(one, at) ORDER BY at LIMIT (payload ->> 'limit')::bigint);
  by_vectors CONSTANT text[] := CASE WHEN payload ->> 'vector' IS NOT NULL THEN
    ARRAY(SELECT one ->> 0 FROM mesh_nearest(asked) list, json_array_elements(list) one GROUP BY 1 ORDER BY min((one ->> 1)::float8) LIMIT (payload ->> 'limit')::bigint) END;
  hits CONSTANT text[] := by_words || by_vectors;
  in_order CONSTANT text := 'ORDER BY CASE WHEN has_turns THEN turn END, CASE WHEN has_times AND NOT has_turns THEN event_time END, created_at, number, id';
  stored CONSTANT text := 'FROM unnest($1, $2) named(id, place) CROSS JOIN LATERAL (SELECT * FROM memories m WHERE m.id = named.id AND m.kind = ''memory'' OFFSET 0) %1$s ';
  newest CONSTANT text := ' ORDER BY t.created_at DESC, t.number DESC, t.id DESC';
  sessions json;
  ids text[];
  places int[];
BEGIN
  EXECUTE format(
    'WITH whole AS MATERIALIZED (SELECT place.partition, place.session_id, own.* FROM (SELECT DISTINCT t.tenant, t.partition, t.session_id FROM %1$s AND t.session_id IS NOT NULL) place CROSS JOIN LATERAL ( '
    '    SELECT array_agg(id %2$s) AS ids, sum(length) AS length, json_agg(words) FILTER (WHERE words IS NOT NULL) AS words, 1 - min(distance) AS cosine FROM ( '
    '      SELECT *, bool_and(turn IS NOT NULL) OVER () AS has_turns, bool_and(event_time IS NOT NULL) OVER () AS has_times FROM ( '
    '        SELECT t.id, t.turn, t.event_time, t.created_at, t.number, coalesce(cardinality(t.keywords), 0) AS length, CASE WHEN t.keywords && $2 THEN ARRAY(SELECT word FROM unnest(t.keywords) word WHERE word = ANY ($2)) END AS words, CASE WHEN %4$s THEN nullif(%5$s, ''NaN'') END AS distance '
    '        FROM (SELECT * FROM memories m WHERE m.tenant = place.tenant AND m.kind = ''memory'' AND m.partition = place.partition AND m.session_id = place.session_id OFFSET 0) t WHERE (%3$s) OFFSET 0) member) each) own '
    '  WHERE ids IS NOT NULL), '
    'placed AS (SELECT DISTINCT ids[place] AS id, place::int FROM whole, unnest(ids) WITH ORDINALITY one(id, at), '
    '  LATERAL generate_series(greatest(at - $3, 1), least(at + $3, cardinality(ids))) place WHERE id IN (SELECT unnest($1))) '
    'SELECT (SELECT json_agg(json_build_array(partition, session_id, length, words, cosine)) FROM whole), array_agg(id), array_agg(place) FROM (SELECT id, place FROM placed UNION ALL SELECT DISTINCT id, NULL::int FROM unnest($1) id WHERE id NOT IN (SELECT id FROM placed)) each',
    mesh_looked_up(payload -> 'readable', mesh_named(payload, '$1')), in_order, mesh_condition('memory', payload -> 'readable'), format(mesh_comparable(payload), 't'), mesh_distance('$4::vector'))
    INTO sessions, ids, places USING hits, mesh_texts(payload -> 'words'), (payload ->> 'steps')::int, payload ->> 'vector';
  RETURN QUERY SELECT 'counts', (statistics || jsonb_build_object('found_sessions', sessions))::text, <indexed_nulls>;
  RETURN QUERY EXECUTE format('SELECT ''memory'', json_build_array(t.partition, place, (%s) IS TRUE)::text, %s %s WHERE %s %s',
    mesh_condition('memory', payload -> 'allowed'), $q$<memory_columns>$q$, format(stored, 't'), mesh_condition('memory', payload -> 'readable'), newest) USING ids, places;
  IF mesh_has_passages(payload) THEN
    RETURN QUERY EXECUTE format('SELECT ''passage'', json_build_array(t.partition)::text, %s %s '
      'CROSS JOIN LATERAL (SELECT * FROM records p WHERE p.tenant = memory.tenant AND p.kind = ''passage'' AND p.ref = memory.id AND p.partition = memory.partition OFFSET 0) t WHERE %s %s',
      $q$<passage_columns>$q$, format(stored, 'memory'), format(mesh_comparable(payload), 't'), newest) USING ids, places;
  END IF;
END $sql$;
