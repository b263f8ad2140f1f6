-- What a search asks beside candidates: the methods of `core.search.candidates.CandidateSource`, which defines the answers.

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

-- readable, allowed (conditions), partitions?, ids, with_vectors (ids), with_tokens? (a boolean), words, model?, dimension?, closers, question_marks: what scoring needs of the
-- readable memories among the ids, newest first, and the vectors of some, as `vector_send` packs them: of each memory its own, then those
-- of its passages. Behind each vector follow its tokens, if these are wanted; of each memory their sizes are given, its own first. The ids with vectors form a hash table: compared one by one, they took most of the time. A text that is not ASCII is sent too, with all keywords: earlier versions left some of its words out.
CREATE OR REPLACE FUNCTION mesh_memories(payload jsonb, OUT memories json, OUT vectors bytea) LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET work_mem = '64MB' AS $sql$
DECLARE
  comparable text := mesh_comparable(payload);
  passages CONSTANT text := 'SELECT string_agg(vector_send(p.embedding) || CASE WHEN $6 THEN coalesce(p.tokens, ''\x'') ELSE ''\x'' END, ''\x''::bytea) AS others, '
    'array_agg(CASE WHEN $6 THEN coalesce(octet_length(p.tokens), 0) ELSE 0 END) AS other_sizes FROM records p '
    'WHERE p.tenant = t.tenant AND p.kind = ''passage'' AND p.ref = t.id AND p.partition = t.partition AND is_compared AND %s OFFSET 0';
  newest CONSTANT text := 'ORDER BY created_at DESC, partition DESC, number DESC, id DESC';
BEGIN
  PERFORM mesh_check(payload);
  EXECUTE format(
    'WITH stored AS (SELECT t.id, t.partition, t.session_id, t.speaker, t.event_time, t.created_at, t.number, coalesce(cardinality(t.keywords), 0) AS length, (%2$s) IS TRUE AS is_allowed, '
    '    right(rtrim(t.content, $4), 1) = ANY ($5) AS is_question, CASE WHEN octet_length(t.content) <> char_length(t.content) THEN t.content END AS content, '
    '    CASE WHEN octet_length(t.content) <> char_length(t.content) THEN t.keywords WHEN t.keywords && $3 THEN ARRAY(SELECT word FROM unnest(t.keywords) word WHERE word = ANY ($3)) END AS words, '
    '    CASE WHEN is_compared AND %3$s THEN vector_send(t.embedding) END AS vector, CASE WHEN $6 AND is_compared AND %3$s THEN t.tokens END AS tokens, others, other_sizes '
    '  FROM (SELECT t.*, t.id IN (SELECT unnest($2)) AS is_compared FROM %1$s) t CROSS JOIN LATERAL (%4$s) parts OFFSET 0) '
    'SELECT json_agg(json_build_array(id, partition, session_id, speaker, event_time, created_at, is_question, is_allowed, length, words, content, vector IS NOT NULL, coalesce(octet_length(tokens), 0) || other_sizes) %5$s), '
    '  string_agg(CASE WHEN others IS NULL AND tokens IS NULL THEN vector ELSE coalesce(vector, ''\x'') || coalesce(tokens, ''\x'') || coalesce(others, ''\x'') END, ''\x''::bytea %5$s) FROM stored',
    mesh_looked_up(payload -> 'readable', mesh_named(payload, '$1')), mesh_condition('memory', payload -> 'allowed'), format(comparable, 't'),
    CASE WHEN mesh_has_passages(payload) THEN format(passages, format(comparable, 'p')) ELSE 'SELECT NULL::bytea AS others, NULL::int[] AS other_sizes' END, newest) INTO memories, vectors
    USING mesh_texts(payload -> 'ids'), mesh_texts(payload -> 'with_vectors'), mesh_texts(payload -> 'words'), payload ->> 'closers', mesh_texts(payload -> 'question_marks'), (payload ->> 'with_tokens')::boolean;
END $sql$;

-- model?, dimension?: whether the caller sees a passage with a vector of the model and the dimension.
CREATE OR REPLACE FUNCTION mesh_has_passages(payload jsonb) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  answer boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT 1 FROM records t WHERE t.kind = ''passage'' AND t.ref IS NOT NULL AND %s)', format(mesh_comparable(payload), 't')) INTO answer;
  RETURN answer;
END $sql$;

-- where, partitions?, ids, steps, words, model?, dimension?, vector?: by id, the ids before it and behind it in its session, both in the order of the session;
-- of each of these sessions the length, the words of its memories that are among the given ones, and how many of the vectors are its nearest, as `vector_send` packs them.
-- The caller compares these, since `index.space` rounds vectors before it compares them. Each session is read by itself, in one piece.
CREATE OR REPLACE FUNCTION mesh_around(payload jsonb, OUT neighbours json, OUT sessions json, OUT vectors bytea) LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET work_mem = '64MB' AS $sql$
DECLARE
  comparable text := mesh_comparable(payload);
  in_order CONSTANT text := 'ORDER BY CASE WHEN has_turns THEN turn END, CASE WHEN has_times AND NOT has_turns THEN event_time END, created_at, number, id';
  stored CONSTANT text := 'SELECT near.session, vector_send(embedding) AS packed FROM near CROSS JOIN LATERAL (SELECT t.embedding FROM %I t WHERE t.tenant = near.tenant AND t.kind = near.kind AND t.id = near.id OFFSET 0) one';
  compared text := 'SELECT session, tenant, ''memory'' AS kind, id, distance FROM whole, unnest(ids, distances) one(id, distance) WHERE distance <= least + 0.02';
  nearest text := format(stored, 'memories');
BEGIN
  PERFORM mesh_check(payload);
  IF mesh_has_passages(payload) THEN
    compared := format('%s UNION ALL SELECT session, t.tenant, t.kind, t.id, coalesce(nullif(%s, ''NaN''), 1) FROM whole, unnest(ids) one CROSS JOIN LATERAL (SELECT * FROM records p '
      'WHERE p.tenant = whole.tenant AND p.kind = ''passage'' AND p.ref = one AND p.partition = whole.partition OFFSET 0) t WHERE %s', compared, mesh_distance('$3::vector'), format(comparable, 't'));
    nearest := nearest || ' UNION ALL ' || format(stored, 'records');
  END IF;
  EXECUTE format(
    'WITH whole AS MATERIALIZED (SELECT place.*, own.* FROM (SELECT *, row_number() OVER () AS session FROM (%1$s) each) place CROSS JOIN LATERAL ( '
    '    SELECT array_agg(id %2$s) AS ids, array_agg(distance %2$s) AS distances, min(distance) AS least, sum(length) AS length, json_agg(words) FILTER (WHERE words IS NOT NULL) AS words FROM ( '
    '      SELECT *, bool_and(turn IS NOT NULL) OVER () AS has_turns, bool_and(event_time IS NOT NULL) OVER () AS has_times FROM ( '
    '        SELECT t.id, t.turn, t.event_time, t.created_at, t.number, coalesce(cardinality(t.keywords), 0) AS length, '
    '          CASE WHEN t.keywords && $2 THEN ARRAY(SELECT word FROM unnest(t.keywords) word WHERE word = ANY ($2)) END AS words, CASE WHEN %4$s THEN coalesce(nullif(%5$s, ''NaN''), 1) END AS distance '
    '        FROM (SELECT * FROM memories m WHERE m.tenant = place.tenant AND m.kind = ''memory'' AND m.partition = place.partition AND m.session_id = place.session_id OFFSET 0) t WHERE (%3$s) OFFSET 0) member) each) own '
    '  WHERE ids IS NOT NULL), '
    'near AS MATERIALIZED (SELECT * FROM (SELECT *, min(distance) OVER (PARTITION BY session) AS best FROM (%6$s) each) compared WHERE distance <= best + 0.02), '
    'nearest AS (SELECT session, count(*) AS vectors, string_agg(packed, ''\x''::bytea) AS packed FROM (%7$s) each GROUP BY 1) '
    'SELECT (SELECT json_object_agg(id, json_build_array(ids[greatest(at - $4, 1) : at - 1], ids[at + 1 : at + $4])) FROM whole, unnest(ids) WITH ORDINALITY one(id, at) WHERE (id IN (SELECT unnest($1))) IS TRUE), '
    '  json_agg(json_build_array(partition, session_id, length, words, coalesce(nearest.vectors, 0)) ORDER BY session), string_agg(packed, ''\x''::bytea ORDER BY session) '
    '  FROM whole LEFT JOIN nearest USING (session)',
    'SELECT DISTINCT t.tenant, t.partition, t.session_id FROM ' || mesh_looked_up('true', mesh_named(payload, '$1')) || ' AND t.session_id IS NOT NULL', in_order,
    mesh_condition('memory', payload -> 'where'), format(comparable, 't'), mesh_distance('$3::vector'), compared, nearest)
    INTO neighbours, sessions, vectors USING mesh_texts(payload -> 'ids'), mesh_texts(payload -> 'words'), payload ->> 'vector', (payload ->> 'steps')::int;
END $sql$;
