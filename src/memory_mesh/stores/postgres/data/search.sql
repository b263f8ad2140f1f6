-- What a search asks beside candidates: the methods of `core.candidate_ports.CandidateSource`, which defines the answers.

-- visible, with_status, readable, allowed (conditions), by_segment, words, model?, dimension?: counts of memories and words.
CREATE OR REPLACE FUNCTION mesh_statistics(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET work_mem = '64MB' AS $sql$
DECLARE
  comparable text := mesh_comparable(payload);
  words text[] := mesh_texts(payload -> 'words');
  corpus record;
  answer json;
BEGIN
  PERFORM mesh_check(payload);
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

-- The test that a vector of the table %1$s has the model and the dimension of the query.
CREATE OR REPLACE FUNCTION mesh_comparable(payload jsonb) RETURNS text LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $sql$
  SELECT CASE WHEN payload ->> 'model' IS NULL THEN 'false'
    ELSE format('%%1$s.model = %s AND %%1$s.dimension = %s', replace(quote_literal(payload ->> 'model'), '%', '%%'), (payload ->> 'dimension')::int) END
$sql$;

-- where, partitions?, words: how many memories contain each word.
CREATE OR REPLACE FUNCTION mesh_count_words(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  answer json;
BEGIN
  PERFORM mesh_check(payload);
  EXECUTE format('SELECT json_object_agg(word, times) FROM (SELECT word, count(*) AS times FROM '
    '(SELECT t.tenant, t.id FROM %s) t JOIN (%s) posted USING (tenant, id) GROUP BY word) counted',
    mesh_source('memory', payload -> 'where'), mesh_posted(payload, '$1')) INTO answer USING mesh_texts(payload -> 'words');
  RETURN answer;
END $sql$;

-- where: each partition and speaker.
CREATE OR REPLACE FUNCTION mesh_speakers(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  answer json;
BEGIN
  PERFORM mesh_check(payload);
  EXECUTE format('SELECT json_agg(json_build_array(partition, speaker)) FROM (SELECT DISTINCT t.partition, t.speaker FROM %s AND t.speaker IS NOT NULL) each',
    mesh_source('memory', payload -> 'where')) INTO answer;
  RETURN answer;
END $sql$;

-- where, ids, steps: by id, the ids before it and behind it in its session, both in the order of the session.
CREATE OR REPLACE FUNCTION mesh_around(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET work_mem = '64MB' AS $sql$
DECLARE
  answer json;
BEGIN
  PERFORM mesh_check(payload);
  EXECUTE format(
    'WITH members AS (SELECT t.*, bool_and(t.turn IS NOT NULL) OVER session AS has_turns, bool_and(t.event_time IS NOT NULL) OVER session AS has_times '
    '  FROM %1$s AND (t.partition, t.session_id) IN (SELECT s.partition, s.session_id FROM memories s WHERE s.id = ANY ($1) AND s.session_id IS NOT NULL) '
    '  WINDOW session AS (PARTITION BY t.partition, t.session_id)), '
    'ordered AS (SELECT id, array_agg(id) OVER (session ROWS BETWEEN %2$s PRECEDING AND 1 PRECEDING) AS before, '
    '  array_agg(id) OVER (session ROWS BETWEEN 1 FOLLOWING AND %2$s FOLLOWING) AS behind FROM members '
    '  WINDOW session AS (PARTITION BY partition, session_id ORDER BY CASE WHEN has_turns THEN turn END, '
    '    CASE WHEN has_times AND NOT has_turns THEN event_time END, created_at, number, id)) '
    'SELECT json_object_agg(id, json_build_array(coalesce(before, ''{}''), coalesce(behind, ''{}''))) FROM ordered WHERE id = ANY ($1)',
    mesh_source('memory', payload -> 'where'), (payload ->> 'steps')::int) INTO answer USING mesh_texts(payload -> 'ids');
  RETURN answer;
END $sql$;

-- where, keys ([partition, session] each), words, model?, dimension?, vector?, rounded?: of each session the length, the counts of the words and
-- the best cosine. Vectors get the length one first, since pgvector computes in 32 bits. Those that are near the best are compared as
-- one byte per dimension, so that the cosine is the same as that of `index.space`.
CREATE OR REPLACE FUNCTION mesh_sessions(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET work_mem = '64MB' AS $sql$
DECLARE
  comparable text := mesh_comparable(payload);
  answer json;
BEGIN
  PERFORM mesh_check(payload);
  EXECUTE format(
    'WITH members AS MATERIALIZED (SELECT t.id, t.partition, t.session_id, t.keywords, t.embedding, t.model, t.dimension FROM %1$s AND (t.partition, t.session_id) IN '
    '  (SELECT one ->> 0, one ->> 1 FROM jsonb_array_elements($1) one)), '
    'times AS (SELECT partition, session_id, json_object_agg(word, times) AS counts FROM (SELECT partition, session_id, word, count(*) AS times '
    '  FROM members, unnest(keywords) word WHERE word = ANY ($2) GROUP BY 1, 2, 3) each GROUP BY 1, 2), '
    'vectors AS (SELECT t.partition, t.session_id, t.embedding FROM members t WHERE %2$s UNION ALL SELECT t.partition, t.session_id, p.embedding '
    '  FROM members t JOIN records p ON p.kind = ''passage'' AND p.ref = t.id AND p.partition = t.partition WHERE %3$s), '
    'compared AS MATERIALIZED (SELECT *, min(distance) OVER (PARTITION BY partition, session_id) AS least FROM (SELECT *, '
    '  coalesce(nullif(unit <=> l2_normalize($3::vector), ''NaN''), 1) AS distance '
    '  FROM (SELECT *, l2_normalize(embedding) AS unit FROM vectors OFFSET 0) normal) each), '
    'near AS MATERIALIZED (SELECT partition, session_id, embedding, (SELECT 127 / coalesce(nullif(max(abs(item::float8)), 0), 1) '
    '  FROM unnest(embedding::real[]) item) AS scale FROM compared WHERE distance <= least + 0.02), '
    'rounded AS MATERIALIZED (SELECT partition, session_id, '
    '  ARRAY(SELECT round(item::float8 * scale) FROM unnest(embedding::real[]) item)::real[]::vector AS whole FROM near), '
    'cosines AS (SELECT partition, session_id, max(1 - coalesce(nullif(whole <=> $4::vector, ''NaN''), 1)) AS cosine FROM rounded GROUP BY 1, 2) '
    'SELECT json_agg(json_build_array(m.partition, m.session_id, m.length, times.counts, cosines.cosine)) FROM '
    '  (SELECT partition, session_id, coalesce(sum(cardinality(keywords)), 0) AS length FROM members GROUP BY 1, 2) m '
    '  LEFT JOIN times USING (partition, session_id) LEFT JOIN cosines USING (partition, session_id)',
    mesh_source('memory', payload -> 'where'), format(comparable, 't'), format(comparable, 'p'))
    INTO answer USING payload -> 'keys', mesh_texts(payload -> 'words'), payload ->> 'vector', payload ->> 'rounded';
  RETURN answer;
END $sql$;
