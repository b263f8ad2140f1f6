-- The functions of the PostgreSQL and Supabase stores. All take and return JSON, and run with the rights of the caller. Those that delete
-- rows call the functions of `security.sql` that may.
-- `tables.description` fills in <description>, and `VERSION` <version>.

CREATE OR REPLACE FUNCTION mesh_tables() RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $sql$ SELECT $json$<description>$json$::jsonb $sql$;

CREATE OR REPLACE FUNCTION mesh_texts(list jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $sql$
  SELECT CASE WHEN jsonb_typeof(list) = 'array' THEN ARRAY(SELECT jsonb_array_elements_text(list)) END
$sql$;

-- The user of a partition, '' for rows without one: [user, agent], or [chain, user, agent] for blocks. Rows of the whole store
-- (partition '') belong to the caller.
CREATE OR REPLACE FUNCTION mesh_tenant(partition text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $sql$
BEGIN
  IF partition = '' THEN
    RETURN mesh_home();
  ELSIF partition IS JSON ARRAY THEN
    RETURN coalesce(partition::json ->> -2, '');
  END IF;
  RETURN '';
END $sql$;

-- An older program must not write rows that it does not know, nor read what has changed its meaning.
CREATE OR REPLACE FUNCTION mesh_check(payload jsonb) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $sql$
BEGIN
  IF payload ->> 'schema' IS DISTINCT FROM '<version>' THEN
    RAISE EXCEPTION 'the store has schema <version>' USING ERRCODE = 'MM003', HINT = '<version>';
  END IF;
END $sql$;

-- --- conditions: the SQL text of a condition that is given as JSON ---

CREATE OR REPLACE FUNCTION mesh_condition(of_kind text, given jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  op text := given ->> 0;
  parts text;
BEGIN
  IF jsonb_typeof(given) IS DISTINCT FROM 'array' THEN
    RETURN 'true';
  ELSIF op IN ('and', 'or') THEN
    SELECT string_agg('(' || mesh_condition(of_kind, part) || ')', ' ' || op || ' ') INTO parts FROM jsonb_array_elements(given -> 1) part;
    RETURN coalesce(parts, CASE op WHEN 'and' THEN 'true' ELSE 'false' END);
  ELSIF op = 'not' THEN
    RETURN 'NOT (' || mesh_condition(of_kind, given -> 1) || ')';
  END IF;
  RETURN mesh_comparison(of_kind, op, given ->> 1, given -> 2);
END $sql$;

CREATE OR REPLACE FUNCTION mesh_comparison(of_kind text, op text, field text, literals jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  type text := mesh_tables() -> 'types' ->> field;
  value text := CASE field WHEN 'kind' THEN quote_literal(of_kind) || '::text' ELSE mesh_tables() -> 'kinds' -> of_kind -> 'fields' ->> field END;
  tests text[];
  literal_type text;
  same jsonb;
BEGIN
  -- The operator becomes SQL text. An invented one could make a REST client another user.
  IF op IS NULL OR op NOT IN ('null', 'in', 'like', '=', '<>', '<', '<=', '>', '>=') THEN
    RAISE EXCEPTION 'unknown operator %', op USING ERRCODE = 'MM004';
  END IF;
  IF starts_with(field, 'metadata.') THEN
    type := 'key';
    value := coalesce(mesh_tables() -> 'kinds' -> of_kind -> 'fields' ->> 'metadata', 'NULL::jsonb') || ' -> ' || quote_literal(substr(field, 10));
  ELSIF type IS NULL THEN
    RAISE EXCEPTION 'unknown column %', field USING ERRCODE = 'MM004';
  END IF;
  IF op = 'null' THEN
    RETURN CASE type WHEN 'key' THEN format('coalesce(jsonb_typeof(%s), ''null'') = ''null''', value) ELSE coalesce(value, 'NULL') || ' IS NULL' END;
  END IF;
  FOR literal_type, same IN
    SELECT replace(jsonb_typeof(one), 'object', 'number'), jsonb_agg(coalesce(one -> 'real', one)) FROM jsonb_array_elements(literals) one GROUP BY 1
  LOOP
    tests := tests || CASE
      WHEN value IS NULL THEN 'NULL::boolean'
      WHEN type = 'key' THEN format('CASE jsonb_typeof(%s) WHEN %L THEN %s END', value, literal_type,
        mesh_test(op, literal_type, format('((%s) #>> ''{}'')', value) || CASE literal_type WHEN 'number' THEN '::float8' WHEN 'boolean' THEN '::boolean' ELSE ' COLLATE "C"' END, same))
      WHEN type = 'list' AND literal_type = 'string' THEN mesh_list_test(op, value, same)
      WHEN type = literal_type THEN mesh_test(op, literal_type, value, same)
      ELSE 'NULL::boolean'
    END;
  END LOOP;
  RETURN coalesce(array_to_string(tests, ' OR '), 'false');
END $sql$;

-- A test of one value. LIKE has no escape character, and compares text only.
CREATE OR REPLACE FUNCTION mesh_test(op text, type text, value text, literals jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $sql$
BEGIN
  RETURN (SELECT CASE
    WHEN op = 'like' THEN CASE type WHEN 'string' THEN format('%s LIKE %L ESCAPE ''''', value, literals ->> 0) ELSE 'NULL::boolean' END
    WHEN op = 'in' THEN format('%s = ANY (%L::%s[])', value, ARRAY(SELECT jsonb_array_elements_text(literals)),
      CASE type WHEN 'number' THEN 'float8' WHEN 'string' THEN 'text' ELSE type END)
    WHEN type = 'number' AND literals ->> 0 ~ '^-?\d{1,15}$' THEN format('%s %s %s', value, op, literals ->> 0)
    ELSE format('%s %s %L::%s', value, op, literals ->> 0, CASE type WHEN 'number' THEN 'float8' WHEN 'string' THEN 'text' ELSE type END)
  END);
END $sql$;

-- A list satisfies a test that one of its items does; "<>" means that no item is equal.
CREATE OR REPLACE FUNCTION mesh_list_test(op text, value text, literals jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $sql$
BEGIN
  RETURN (SELECT CASE
    WHEN op IN ('=', 'in') THEN format('%s && %L::text[]', value, ARRAY(SELECT jsonb_array_elements_text(literals)))
    WHEN op = '<>' THEN format('NOT (%s && %L::text[])', value, ARRAY(SELECT jsonb_array_elements_text(literals)))
    ELSE format('CASE WHEN %1$s IS NOT NULL THEN EXISTS (SELECT 1 FROM unnest(%1$s) item WHERE %2$s) END', value,
      mesh_test(op, 'string', 'item COLLATE "C"', literals))
  END);
END $sql$;

CREATE OR REPLACE FUNCTION mesh_source(of_kind text, given jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $sql$
BEGIN
  RETURN (SELECT format('%I t WHERE t.kind = %L AND (%s)', mesh_tables() -> 'kinds' -> of_kind ->> 'table', of_kind, mesh_condition(of_kind, given)));
END $sql$;

-- --- reads ---

-- kind, where, limit?, after? (created_at, partition, number, id): rows as arrays, newest first.
CREATE OR REPLACE FUNCTION mesh_find(payload jsonb) RETURNS SETOF json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  of_kind text := payload ->> 'kind';
  page jsonb := payload -> 'after';
BEGIN
  PERFORM mesh_check(payload);
  -- What each search and each write reads: statements that are planned once for a connection, perhaps before there are rows, so they look up each by its key.
  IF of_kind = 'memory' AND payload #>> '{where,0}' = 'in' AND payload #>> '{where,1}' = 'id' AND page ->> 0 IS NULL AND payload ->> 'limit' IS NULL THEN
    RETURN QUERY SELECT <memory>
      FROM (SELECT DISTINCT one #>> '{}' AS id FROM jsonb_array_elements(payload #> '{where,2}') one WHERE jsonb_typeof(one) = 'string') named
      CROSS JOIN LATERAL (SELECT * FROM memories m WHERE m.id = named.id AND m.kind = 'memory' OFFSET 0) t
      ORDER BY t.created_at DESC, t.partition DESC, t.number DESC, t.id DESC;
    RETURN;
  ELSIF of_kind = 'memory' AND payload #>> '{where,0}' = 'in' AND payload #>> '{where,1}' = 'fingerprint' AND page ->> 0 IS NULL AND payload ->> 'limit' IS NULL THEN
    RETURN QUERY SELECT <memory>
      FROM (SELECT DISTINCT one #>> '{}' AS fingerprint FROM jsonb_array_elements(payload #> '{where,2}') one WHERE jsonb_typeof(one) = 'string') named
      CROSS JOIN LATERAL (SELECT * FROM memories m WHERE m.fingerprint = named.fingerprint AND m.kind = 'memory' OFFSET 0) t
      ORDER BY t.created_at DESC, t.partition DESC, t.number DESC, t.id DESC;
    RETURN;
  END IF;
  RETURN QUERY EXECUTE format(
    'SELECT %s FROM (SELECT * FROM %s%s ORDER BY t.created_at DESC, t.partition DESC, t.number DESC, t.id DESC LIMIT %L) t '
    'ORDER BY t.created_at DESC, t.partition DESC, t.number DESC, t.id DESC',
    mesh_tables() -> 'kinds' -> of_kind ->> 'reading', mesh_source(of_kind, payload -> 'where'),
    CASE WHEN page ->> 0 IS NULL THEN '' ELSE
      format(' AND (t.created_at, t.partition, t.number, t.id) < (%L, %L, %s, %L)', page ->> 0, page ->> 1, (page ->> 2)::bigint, page ->> 3) END,
    (payload ->> 'limit')::bigint);
END $sql$;

-- kind, partition, limit, after? (created_at, number, id): what an index in the memory of a client is built from, newest first.
-- The columns are not JSON, so that a client of PostgreSQL reads them as bytes, in half of the time.
CREATE OR REPLACE FUNCTION mesh_indexed(payload jsonb) RETURNS TABLE (<indexed_types>) LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET work_mem = '64MB' AS $sql$
DECLARE
  page jsonb := payload -> 'after';
BEGIN
  PERFORM mesh_check(payload);
  RETURN QUERY EXECUTE format(
    'SELECT %s WHERE t.kind = %L AND t.partition = %L AND %s ORDER BY t.created_at DESC, t.number DESC, t.id DESC LIMIT %s',
    CASE payload ->> 'kind' WHEN 'memory' THEN $q$<memory_columns> FROM memories t$q$ WHEN 'passage' THEN $q$<passage_columns> FROM records t$q$ END, payload ->> 'kind', payload ->> 'partition',
    CASE WHEN page ->> 0 IS NULL THEN 'true' ELSE format('(t.created_at, t.number, t.id) < (%L, %s, %L)', page ->> 0, (page ->> 1)::bigint, page ->> 2) END,
    (payload ->> 'limit')::bigint);
END $sql$;

CREATE OR REPLACE FUNCTION mesh_ids(payload jsonb) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
BEGIN
  PERFORM mesh_check(payload);
  RETURN QUERY EXECUTE 'SELECT t.id::text FROM ' || mesh_source(payload ->> 'kind', payload -> 'where');
END $sql$;

CREATE OR REPLACE FUNCTION mesh_count(payload jsonb) RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  found bigint;
BEGIN
  PERFORM mesh_check(payload);
  EXECUTE 'SELECT count(*) FROM ' || mesh_source(payload ->> 'kind', payload -> 'where') INTO found;
  RETURN found;
END $sql$;

-- kind, where, columns, length?, by_segment: each value of the first text column that has one, or its beginning, and the number of its rows.
CREATE OR REPLACE FUNCTION mesh_tally(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  answer json;
  of_kind text := payload ->> 'kind';
  value text := (SELECT string_agg(format('(%s)::text', coalesce(mesh_tables() -> 'kinds' -> of_kind -> 'fields' ->> name, 'NULL')), ', ' ORDER BY place)
    FROM jsonb_array_elements_text(payload -> 'columns') WITH ORDINALITY each (name, place));
BEGIN
  PERFORM mesh_check(payload);
  EXECUTE format('SELECT json_agg(json_build_array(each.value, each.rows)) FROM (SELECT left(coalesce(%s), %L) AS value, %s AS rows FROM %s GROUP BY 1) each',
    value, coalesce((payload ->> 'length')::int, 2147483647),
    CASE WHEN payload -> 'by_segment' = 'true' THEN 'sum(t.memories)' ELSE 'count(*)' END,
    CASE WHEN payload -> 'by_segment' = 'true' THEN format('keyword_segments t WHERE t.memories > 0 AND (%s)', mesh_condition('memory', payload -> 'where')) ELSE mesh_source(of_kind, payload -> 'where') END) INTO answer;
  RETURN answer;
END $sql$;

-- partition, version?: the state of a partition, and its moves from a version on.
CREATE OR REPLACE FUNCTION mesh_changes(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
BEGIN
  PERFORM mesh_check(payload);
  RETURN json_build_object(
    'version', p.version, 'nonce', p.nonce,
    'moves', (SELECT coalesce(json_agg(json_build_array(m.version, m.nonce, m.kind, m.id) ORDER BY m.version), '[]') FROM moves m
      WHERE m.tenant = p.tenant AND m.partition = p.partition AND m.version >= (payload ->> 'version')::bigint))
    FROM (SELECT 1) one LEFT JOIN partitions p ON p.tenant = mesh_tenant(payload ->> 'partition') AND p.partition = payload ->> 'partition';
END $sql$;

CREATE OR REPLACE FUNCTION mesh_version_of(snapshot text) RETURNS text LANGUAGE sql STABLE AS $sql$
  SELECT concat_ws(' ', snapshot, pg_last_wal_replay_lsn(), pg_postmaster_start_time())
$sql$;

-- Equal values mean that nothing was written in between. A replica does not know which transactions run, and a server that crashed or was
-- restored may give a number twice.
CREATE OR REPLACE FUNCTION mesh_data_version(payload jsonb) RETURNS text LANGUAGE sql STABLE SET search_path FROM CURRENT AS $sql$
  SELECT mesh_version_of(pg_current_snapshot()::text)
$sql$;

-- The data version without this transaction, which writes and has no subtransaction, and the one right after it, if no other one ends
-- meanwhile. Both are null if another transaction began after the last one that ended and before this one, or began later and has ended.
CREATE OR REPLACE FUNCTION mesh_data_versions(OUT before text, OUT after text) LANGUAGE plpgsql SET search_path FROM CURRENT AS $sql$
DECLARE
  seen CONSTANT pg_snapshot := pg_current_snapshot();
  running CONSTANT text := split_part(seen::text, ':', 3);
  next CONSTANT bigint := pg_current_xact_id()::text::bigint + 1;
BEGIN
  IF pg_snapshot_xmax(seen) = pg_current_xact_id() THEN
    before := mesh_version_of(seen::text);
    after := mesh_version_of(concat_ws(':', CASE WHEN running = '' THEN next ELSE pg_snapshot_xmin(seen)::text::bigint END, next, running));
  END IF;
END $sql$;

-- kind, model, dimension, vector, where, by_segment, count?, limit, with_vectors: the owners of the nearest vectors, each with a vector as base64, or else lists of owners with their distances.
-- pgvector computes in 32 bits, in which the squares of very small and very large numbers do not exist; such vectors get the length one
-- first. With vectors, all within a small distance of the last one are returned, and those that cannot be compared; the caller ranks them in 64 bits.
-- Of more than <few_vectors> memories (`count` says how many there are), an index of the model finds the nearest, if there is one and the planner prefers it.
CREATE OR REPLACE FUNCTION mesh_nearest(payload jsonb) RETURNS SETOF json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET work_mem = '64MB' AS $sql$
DECLARE
  of_kind text := payload ->> 'kind';
  comparable text := mesh_comparable(payload);
  source text := mesh_source(of_kind, payload -> 'where');
  distance text := mesh_distance(format('%L::vector', payload ->> 'vector'));
  given CONSTANT text := 'SELECT t.%s AS owner, t.tenant, t.kind, t.id, t.norm, t.embedding FROM %s AND %s';
  parts text[] := ARRAY[format(given, 'id', source, format(comparable, 't'))];
  tables text[] := ARRAY[mesh_tables() -> 'kinds' -> of_kind ->> 'table'];
  best text := 'distance AS distance FROM compared WHERE distance >= 0';
  nearest text := format(' ORDER BY l2_normalize(t.embedding)::halfvec(%s) <#> l2_normalize(%L::vector)::halfvec LIMIT %s', (payload ->> 'dimension')::int, payload ->> 'vector', 2 * (payload ->> 'limit')::bigint + 20);
  packed CONSTANT text := 'SELECT json_build_array(owner, encode(vector_send(embedding), ''base64'')) FROM ';
  ranked text := 'SELECT coalesce(json_agg(json_build_array(owner, distance)), ''[]'') FROM (SELECT owner, %2$s AS distance FROM (SELECT owner, coalesce(nullif(%3$s, ''NaN''), 1) AS distance FROM (%1$s) t) each %4$s ORDER BY 2, 1 LIMIT %5$s) near';
  grouped text[] := ARRAY['distance', ''];
  is_packed boolean := coalesce((payload -> 'with_vectors')::boolean, false);
  found bigint := (payload ->> 'count')::bigint;
  answer json;
BEGIN
  PERFORM mesh_check(payload);
  IF of_kind = 'memory' AND mesh_has_passages(payload) THEN
    best := 'min(distance) AS distance FROM compared WHERE distance >= 0 GROUP BY owner';
    parts := parts || format(given, 'ref', 'records t WHERE t.kind = ''passage''', format('%s AND (t.tenant, t.ref) IN (SELECT t.tenant, t.id FROM %s)', format(comparable, 't'), source));
    tables := tables || 'records'::text;
    grouped := ARRAY['min(distance)', 'GROUP BY owner'];
  END IF;
  -- The condition of the index, which earlier versions created too.
  nearest := format(' AND vector_dims(t.embedding) = %s', (payload ->> 'dimension')::int) || nearest;
  IF found IS NOT NULL THEN
    NULL;
  ELSIF payload -> 'by_segment' = 'true' THEN
    EXECUTE format('SELECT sum(t.memories) FROM keyword_segments t WHERE (%s) AND t.model = %L', mesh_condition(of_kind, payload -> 'where'), payload ->> 'model') INTO found;
  ELSE
    EXECUTE format('SELECT count(*) FROM (SELECT 1 FROM %s AND t.model = %L LIMIT <few_vectors> + 1) capped', source, payload ->> 'model') INTO found;
  END IF;
  IF found > <few_vectors> THEN
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', '200', true);
    nearest := '(' || array_to_string(parts, nearest || ') UNION ALL (') || nearest || ')';
    IF is_packed THEN
      RETURN QUERY EXECUTE format('%s(%s) near', packed, nearest);
      GET DIAGNOSTICS found = ROW_COUNT;
    ELSE
      EXECUTE format(ranked, nearest, grouped[1], distance, grouped[2], (payload ->> 'limit')::bigint) INTO answer;
      found := 2 * json_array_length(answer);
      RETURN NEXT answer;
    END IF;
    IF found >= 2 * (payload ->> 'limit')::bigint THEN
      RETURN;
    END IF;  -- the index gave up before it found enough that meet the condition
  END IF;
  IF NOT is_packed THEN
    RETURN QUERY EXECUTE format(ranked, array_to_string(parts, ' UNION ALL '), grouped[1], distance, grouped[2], (payload ->> 'limit')::bigint);
    RETURN;
  END IF;
  RETURN QUERY EXECUTE format(
    'WITH compared AS MATERIALIZED (SELECT owner, tenant, kind, id, coalesce(nullif(%4$s, ''NaN''), -1) AS distance FROM (%1$s) t), '
    'last AS (SELECT %5$s ORDER BY 1 OFFSET greatest(%3$s - 1, 0) LIMIT 1), '
    'near AS MATERIALIZED (SELECT * FROM compared WHERE distance <= coalesce((SELECT distance FROM last), 2) + 1e-5 AND %3$s > 0) %2$s',
    array_to_string(parts, ' UNION ALL '), (SELECT string_agg(packed || format('near CROSS JOIN LATERAL '
      '(SELECT t.embedding FROM %I t WHERE t.tenant = near.tenant AND t.kind = near.kind AND t.id = near.id OFFSET 0) stored', name), ' UNION ALL ') FROM unnest(tables) name),
    (payload ->> 'limit')::bigint, distance, best);
END $sql$;

-- The SQL text of the cosine distance of a row `t` from a vector.
CREATE OR REPLACE FUNCTION mesh_distance(vector text) RETURNS text LANGUAGE sql IMMUTABLE AS $sql$
  SELECT format('CASE WHEN t.norm BETWEEN 1e-12 AND 1e12 THEN t.embedding ELSE l2_normalize(t.embedding) END <=> l2_normalize(%s)', vector)
$sql$;

-- --- writes ---

-- The rows of a change that are stored now.
CREATE OR REPLACE FUNCTION mesh_stored(keys jsonb) RETURNS TABLE (source text, kind text, id text, tenant text, partition text, revision bigint)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
#variable_conflict use_column
DECLARE
  kinds text[] := ARRAY(SELECT DISTINCT one ->> 'kind' FROM jsonb_array_elements(keys) one);
BEGIN
  <stored>
END $sql$;

-- Applies a change as one. The caller's tenant is that of all new rows, or null if they are of several.
--   nonce    a random name of this change
--   seen     partition -> version at which the caller read it
--   deletes  [{kind, id}, …]
--   puts     [{column: value, …, replaces, place}, …], vectors as text unless they are in `vectors`, tokens as hex
--   retry    true if an earlier call with this nonce may have been committed
--   unused   fingerprints that no active memory has
--   same     [{kind, id, extra}, …] of rows in `records` that have this `extra`
-- `vectors` has one for each put, or null. Returns the new versions of partitions, and the data versions of `mesh_data_versions`.
-- 23505: an id is taken. MM002: what the caller read has changed. MM003: the store has another schema. An exception is not caught here:
-- that takes a subtransaction.
CREATE OR REPLACE FUNCTION mesh_apply(tenant text, payload jsonb, vectors vector[] DEFAULT NULL) RETURNS jsonb LANGUAGE plpgsql SECURITY INVOKER SET search_path FROM CURRENT AS $sql$
#variable_conflict use_column
DECLARE
  moving CONSTANT text[] := ARRAY['memory', 'skill', 'passage', 'link'];
  puts jsonb := coalesce(payload -> 'puts', '[]');
  named jsonb;  -- what most of the following reads of the puts, which are long
  tenants jsonb;  -- partition -> tenant
  keys jsonb := coalesce(payload -> 'deletes', '[]');
  seen jsonb := coalesce(payload -> 'seen', '{}');
  old jsonb;
  touched text[];
  moved jsonb;
  versions jsonb;
  kinds text[];
BEGIN
  PERFORM mesh_check(payload);
  SELECT coalesce(jsonb_agg(jsonb_build_object('kind', one -> 'kind', 'id', one -> 'id', 'partition', one -> 'partition', 'replaces', one -> 'replaces', 'place', one -> 'place')), '[]')
    INTO named FROM jsonb_array_elements(puts) one;
  SELECT coalesce(jsonb_object_agg(name, mesh_tenant(name)), '{}') INTO tenants
    FROM (SELECT DISTINCT one ->> 'partition' AS name FROM jsonb_array_elements(named) one) place WHERE name IS NOT NULL;
  IF tenant IS NOT NULL AND EXISTS (SELECT 1 FROM jsonb_each_text(tenants) place WHERE place.value <> tenant) THEN
    RAISE EXCEPTION 'a row of the change belongs to another user than %', tenant USING ERRCODE = 'MM004';
  END IF;
  kinds := ARRAY(SELECT DISTINCT one ->> 'kind' FROM jsonb_array_elements(named || keys) one);
  IF NOT kinds <@ ARRAY[<kinds>] THEN
    RAISE EXCEPTION 'a row of the change has an unknown kind' USING ERRCODE = 'MM004';
  END IF;
  SELECT keys || coalesce(jsonb_agg(one - 'partition' - 'place'), '[]') INTO keys FROM jsonb_array_elements(named) one WHERE (one ->> 'replaces')::bigint > 0;
  SELECT coalesce(jsonb_agg(stored), '[]') INTO old
    FROM mesh_stored((SELECT coalesce(jsonb_agg(one), '[]') FROM jsonb_array_elements(keys) one WHERE one ->> 'kind' = ANY (moving))) stored;

  -- Locks in one order, so that two changes never wait for each other.
  SELECT coalesce(array_agg(DISTINCT name ORDER BY name), '{}') INTO touched FROM (
    SELECT one ->> 'partition' AS name FROM jsonb_array_elements(named || old) one WHERE one ->> 'kind' = ANY (moving)
    UNION SELECT jsonb_object_keys(seen)) named;
  INSERT INTO partitions (tenant, partition, version, nonce) SELECT mesh_tenant(name), name, 0, '' FROM unnest(touched) name ORDER BY name ON CONFLICT DO NOTHING;
  PERFORM 1 FROM partitions p WHERE p.partition = ANY (touched) ORDER BY p.partition FOR UPDATE;
  IF keys <> '[]' THEN  -- again: another change may have come first
    SELECT coalesce(jsonb_agg(stored), '[]') INTO old FROM mesh_stored(keys) stored;
    IF EXISTS (SELECT 1 FROM jsonb_array_elements(old) one WHERE one ->> 'kind' = ANY (moving) AND one ->> 'partition' <> ALL (touched)) THEN
      RAISE EXCEPTION 'a row moved meanwhile' USING ERRCODE = '40001';
    END IF;
  END IF;
  IF payload -> 'retry' = 'true' AND EXISTS (SELECT 1 FROM moves m WHERE m.partition = ANY (touched) AND m.nonce = payload ->> 'nonce') THEN
    RETURN (SELECT jsonb_build_object('versions', coalesce(jsonb_object_agg(p.partition, p.version), '{}')) FROM partitions p WHERE p.partition = ANY (touched) AND p.nonce = payload ->> 'nonce');
  END IF;
  IF EXISTS (SELECT 1 FROM jsonb_each_text(seen) s LEFT JOIN partitions p ON p.partition = s.key WHERE p.version IS DISTINCT FROM s.value::bigint) THEN
    RAISE EXCEPTION 'a partition has changed' USING ERRCODE = 'MM002';
  END IF;
  IF payload ? 'unused' AND (
    EXISTS (SELECT 1 FROM jsonb_array_elements_text(payload -> 'unused') name CROSS JOIN LATERAL
      (SELECT 1 FROM memories m WHERE m.fingerprint = name AND m.kind = 'memory' AND m.status = 'active' OFFSET 0) stored)
    OR EXISTS (SELECT 1 FROM jsonb_array_elements(payload -> 'same') one LEFT JOIN LATERAL
      (SELECT r.extra FROM records r WHERE r.id = one ->> 'id' AND r.kind = one ->> 'kind' OFFSET 0) stored ON true WHERE stored.extra IS DISTINCT FROM one -> 'extra')) THEN
    RAISE EXCEPTION 'what the change assumes is wrong' USING ERRCODE = 'MM002';
  END IF;

  -- A replaced row is deleted and inserted: it may have moved to another user.
  IF old @> '[{"kind": "memory"}]' THEN
    PERFORM mesh_count_keywords(old, -1);
  END IF;
  IF keys <> '[]' AND mesh_delete(old, keys) < (SELECT count(*) FROM jsonb_array_elements(keys) one WHERE one ? 'replaces') THEN
    RAISE EXCEPTION 'a row is not at the revision that was read' USING ERRCODE = 'MM002';
  END IF;
  <inserts>
  IF 'memory' = ANY (kinds) THEN
    PERFORM mesh_count_keywords((SELECT jsonb_agg(one || jsonb_build_object('tenant', tenants -> (one ->> 'partition'))) FROM jsonb_array_elements(named) one), 1);
  END IF;
  IF EXISTS (SELECT 1 FROM jsonb_array_elements(named) one WHERE one ->> 'kind' = 'usage' OR one ->> 'kind' = 'memory' AND one ->> 'replaces' <> '0') THEN
    UPDATE memories m SET access_count = (u.extra ->> 'access_count')::bigint FROM records u WHERE u.tenant = m.tenant AND u.kind = 'usage' AND u.id = m.id
      AND m.id IN (SELECT one ->> 'id' FROM jsonb_array_elements(named) one) AND u.extra ->> 'access_count' <> m.access_count::text;
  END IF;

  -- The log: what was deleted, then what was put, each in the partition that it left and in the one that it entered.
  WITH entered AS MATERIALIZED (
    SELECT place, kind, id, partition FROM jsonb_to_recordset(named) AS n(place bigint, kind text, id text, partition text) WHERE kind = ANY (moving)
  ), ends AS (
    SELECT place, kind, id, partition FROM entered
    UNION SELECT coalesce(e.place, -1), kind, id, o.partition FROM jsonb_to_recordset(old) AS o(kind text, id text, partition text) LEFT JOIN entered e USING (kind, id) WHERE kind = ANY (moving)
  ), numbered AS (
    SELECT p.tenant, p.partition, p.version + row_number() OVER (PARTITION BY p.partition ORDER BY e.place, e.kind, e.id) AS version, e.kind, e.id
    FROM ends e JOIN partitions p ON p.partition = e.partition
  ), logged AS (
    INSERT INTO moves (tenant, partition, version, nonce, kind, id) SELECT tenant, partition, version, payload ->> 'nonce', kind, id FROM numbered
  ), counted AS (
    UPDATE partitions p SET version = n.version, nonce = payload ->> 'nonce'
    FROM (SELECT tenant, partition, max(version) AS version FROM numbered GROUP BY 1, 2) n WHERE p.tenant = n.tenant AND p.partition = n.partition
    RETURNING p.partition, p.version
  )
  SELECT coalesce(jsonb_object_agg(partition, version), '{}') INTO versions FROM counted;
  IF EXISTS (SELECT 1 FROM jsonb_each_text(versions) WHERE value::bigint % 1000 < jsonb_array_length(named || old)) THEN
    PERFORM mesh_delete_moves(versions);
  END IF;
  RETURN jsonb_build_object('versions', versions) || (SELECT to_jsonb(v) FROM mesh_data_versions() v);
END $sql$;
