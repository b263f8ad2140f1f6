-- Who may see and write which rows. The tables belong to a role that programs do not use, and row-level security is forced.

-- The roles of programs. A `server` acts for all users; a `user` role for one user, or for rows without a user, and perhaps for one
-- of its agents; a `token` role is the login of PostgREST, whose verified token names the user. Settings that a client can change
-- count for a `token` role only, which clients cannot be.
CREATE TABLE IF NOT EXISTS mesh_roles (
  role text PRIMARY KEY, scope text NOT NULL CHECK (scope IN ('server', 'user', 'token')), user_id text CHECK (user_id <> ''), agent_id text);
REVOKE ALL ON mesh_roles FROM PUBLIC;

-- The user and agent of the caller; no row if the caller is unknown. `SET ROLE` does not change `session_user`.
CREATE OR REPLACE FUNCTION mesh_caller(OUT is_server boolean, OUT user_id text, OUT agent_id text) RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $sql$
  SELECT r.scope = 'server' OR (r.scope = 'token' AND claims ->> 'role' = 'service_role'),
    CASE r.scope WHEN 'token' THEN claims ->> 'sub' ELSE r.user_id END, CASE r.scope WHEN 'token' THEN claims ->> 'agent_id' ELSE r.agent_id END
  FROM mesh_roles r, LATERAL (SELECT nullif(current_setting('request.jwt.claims', true), '')::json AS claims) token
  WHERE r.role = session_user AND (r.scope <> 'token' OR claims ->> 'role' = 'service_role' OR claims ->> 'sub' <> '')
$sql$;

-- What the names of the caller's partitions start with; see `core.model.where.partition` and `core.audit.chain_name`.
CREATE OR REPLACE FUNCTION mesh_identity() RETURNS text[] LANGUAGE sql STABLE SET search_path FROM CURRENT AS $sql$
  SELECT CASE WHEN is_server THEN ARRAY[''] ELSE ARRAY(
    SELECT format('[%s%s, %s', first, coalesce(to_json(user_id)::text, 'null'), rest)
    FROM unnest(ARRAY['', '"chain", ', '"recalls", ']) first,
      unnest(CASE WHEN agent_id IS NULL THEN ARRAY[''] ELSE ARRAY['null]', to_json(agent_id)::text || ']'] END) rest)
  END FROM mesh_caller()
$sql$;

-- The tenant of the caller's rows that belong to no partition.
CREATE OR REPLACE FUNCTION mesh_home() RETURNS text LANGUAGE sql STABLE SET search_path FROM CURRENT AS $sql$
  SELECT CASE WHEN is_server THEN '' ELSE coalesce(user_id, '') END FROM mesh_caller()
$sql$;

-- --- deletions ---

-- With the right to delete from a table PostgreSQL lets a role lock the table against all others, so a role of one user has none. It
-- deletes through these functions, which run with the rights of the owner. Row-level security may not hold for an owner: a superuser,
-- or on another server of Citus. So each function itself leaves alone what the caller, who is the role that logged in, does not see.

-- The condition of the policies.
CREATE OR REPLACE FUNCTION mesh_sees(tenant text, partition text, identity text[], home text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $sql$
  SELECT <may_see>
$sql$;

-- old ([{kind, id, tenant, source}, …]), keys ([{kind, id, replaces?}, …]): deletes the rows that are in both, those with `replaces` only
-- at this revision. Returns how many of these it deleted.
CREATE OR REPLACE FUNCTION mesh_delete(old jsonb, keys jsonb) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $sql$
DECLARE
  identity text[] := mesh_identity();
  home text := mesh_home();
  kinds text[] := ARRAY(SELECT DISTINCT one ->> 'kind' FROM jsonb_array_elements(old) one);
  replaced bigint := 0;
BEGIN
  <deletes>
  RETURN replaced;
END $sql$;

-- versions (partition -> version): deletes what the log of each partition no longer keeps at this version.
CREATE OR REPLACE FUNCTION mesh_delete_moves(versions jsonb) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $sql$
DECLARE
  identity text[] := mesh_identity();
  home text := mesh_home();
BEGIN
  DELETE FROM moves t USING (SELECT key, value, mesh_tenant(key) AS tenant FROM jsonb_each_text(versions) OFFSET 0) v WHERE t.tenant = v.tenant AND t.partition = v.key AND t.version <= v.value::bigint - <kept>
    AND mesh_sees(t.tenant, t.partition, identity, home);
END $sql$;

-- The words of memories ([{tenant, partition, id, words}, …]), and the keys of segments: takes the memories out of the lists of their
-- words, and deletes the segments without memories.
CREATE OR REPLACE FUNCTION mesh_delete_words(posted jsonb, segments jsonb) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $sql$
DECLARE
  identity text[] := mesh_identity();
  home text := mesh_home();
BEGIN
  -- A JSON object finds an id in fewer steps than a list.
  WITH gone AS (
    SELECT m.tenant, m.partition, word, jsonb_object_agg(m.id, 0) AS ids FROM jsonb_to_recordset(posted) AS m(tenant text, partition text, id text, words text[]), unnest(m.words) word
    WHERE mesh_sees(m.tenant, m.partition, identity, home) GROUP BY 1, 2, 3
  ), changed AS MATERIALIZED (
    SELECT l.tenant, l.partition, l.word, l.chunk, kept.* FROM gone
    CROSS JOIN LATERAL (SELECT * FROM keyword_lists t WHERE t.tenant = gone.tenant AND t.partition = gone.partition AND t.word = gone.word AND gone.ids ?| t.ids OFFSET 0) l
    CROSS JOIN LATERAL (SELECT array_agg(id ORDER BY at) AS ids, CASE WHEN min(segment) = max(segment) THEN ARRAY[min(segment)] ELSE array_agg(segment ORDER BY at) END AS segments
      FROM unnest(l.ids, mesh_unpacked(l.segments, l.ids)) WITH ORDINALITY one(id, segment, at) WHERE NOT gone.ids ? id) kept
  ), emptied AS (
    DELETE FROM keyword_lists t USING changed c WHERE t.tenant = c.tenant AND t.partition = c.partition AND t.word = c.word AND t.chunk = c.chunk AND c.ids IS NULL
  )
  UPDATE keyword_lists t SET ids = c.ids, segments = c.segments FROM changed c
    WHERE t.tenant = c.tenant AND t.partition = c.partition AND t.word = c.word AND t.chunk = c.chunk AND c.ids IS NOT NULL;
  DELETE FROM keyword_segments t USING jsonb_to_recordset(segments) AS s(tenant text, partition text, segment uuid)
    WHERE t.tenant = s.tenant AND t.partition = s.partition AND t.segment = s.segment AND t.memories <= 0 AND mesh_sees(t.tenant, t.partition, identity, home);
END $sql$;
REVOKE ALL ON FUNCTION mesh_delete, mesh_delete_moves, mesh_delete_words FROM PUBLIC;

-- --- the functions of neolata ---

-- The memories of an agent, or of all agents, by similarity.
CREATE OR REPLACE FUNCTION search_memories_semantic(
  query_embedding vector, agent_filter text DEFAULT NULL, match_count int DEFAULT 10, similarity_threshold double precision DEFAULT 0)
RETURNS TABLE (id text, agent_id text, content text, category text, tags text[], importance double precision, created_at text, similarity double precision)
LANGUAGE sql STABLE SECURITY INVOKER SET search_path FROM CURRENT AS $sql$
  WITH comparable AS MATERIALIZED (
    SELECT m.* FROM memories m WHERE m.status = 'active' AND (agent_filter IS NULL OR m.agent_id = agent_filter)
      AND (m.expires_at IS NULL OR m.expires_at::timestamptz > now())
      AND (m.valid_from IS NULL OR m.valid_from::timestamptz <= now()) AND (m.valid_until IS NULL OR m.valid_until::timestamptz >= now())
      AND vector_dims(m.embedding) = vector_dims(query_embedding)
  ), ranked AS (SELECT c.*, coalesce(nullif(1 - (c.embedding <=> query_embedding), 'NaN'), 0) AS similarity FROM comparable c)
  SELECT r.id, r.agent_id, r.content, r.category, r.tags, r.importance, r.created_at, r.similarity FROM ranked r
  WHERE r.similarity >= similarity_threshold ORDER BY r.similarity DESC, r.id DESC LIMIT greatest(match_count, 0)
$sql$;

-- The memories that every agent of a user may see, by similarity.
CREATE OR REPLACE FUNCTION search_memories_global(query_embedding vector, match_count int DEFAULT 10, similarity_threshold double precision DEFAULT 0)
RETURNS TABLE (id text, agent_id text, content text, category text, tags text[], importance double precision, created_at text, similarity double precision)
LANGUAGE sql STABLE SECURITY INVOKER SET search_path FROM CURRENT AS $sql$
  WITH comparable AS MATERIALIZED (
    SELECT m.* FROM memories m WHERE m.status = 'active' AND coalesce(m.memory_type, 'global') IN ('global', 'lesson', 'reflection')
      AND coalesce(m.reach, 'global') = 'global'
      AND (m.expires_at IS NULL OR m.expires_at::timestamptz > now())
      AND (m.valid_from IS NULL OR m.valid_from::timestamptz <= now()) AND (m.valid_until IS NULL OR m.valid_until::timestamptz >= now())
      AND vector_dims(m.embedding) = vector_dims(query_embedding)
  ), ranked AS (SELECT c.*, coalesce(nullif(1 - (c.embedding <=> query_embedding), 'NaN'), 0) AS similarity FROM comparable c)
  SELECT r.id, r.agent_id, r.content, r.category, r.tags, r.importance, r.created_at, r.similarity FROM ranked r
  WHERE r.similarity >= similarity_threshold ORDER BY r.similarity DESC, r.id DESC LIMIT greatest(match_count, 0)
$sql$;

-- --- the roles of programs ---

-- Lets a role use the tables: of all users (scope server), of one user or one of its agents (user), or of the user that a verified
-- token names (token). Only the owner of the tables may call it.
CREATE OR REPLACE FUNCTION mesh_grant(role_name text, scope text, user_id text DEFAULT NULL, agent_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY INVOKER SET search_path FROM CURRENT AS $sql$
BEGIN
  INSERT INTO mesh_roles VALUES (role_name, scope, user_id, agent_id)
    ON CONFLICT (role) DO UPDATE SET scope = excluded.scope, user_id = excluded.user_id, agent_id = excluded.agent_id;
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role_name);
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON <tables> TO %I', role_name);
  EXECUTE format('GRANT SELECT ON mesh_migrations, memory_archive, episodes, memory_clusters TO %I', role_name);
  EXECUTE format('GRANT EXECUTE ON FUNCTION mesh_delete, mesh_delete_moves, mesh_delete_words TO %I', role_name);
  IF scope = 'user' THEN
    PERFORM mesh_limit(role_name);
  END IF;
END $sql$;

-- Takes from a role the rights with which it could lock a table against others. It deletes by function, and updates only the columns that
-- the functions of the caller update. The owner keeps its rights. Citus before 13.1 has none for columns: there a role keeps those to tables.
CREATE OR REPLACE FUNCTION mesh_limit(role_name text) RETURNS void LANGUAGE plpgsql SECURITY INVOKER SET search_path FROM CURRENT AS $sql$
BEGIN
  IF role_name = (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'memories'::regclass) THEN
    RETURN;
  END IF;
  EXECUTE format('REVOKE ALL ON <tables> FROM %I', role_name);
  EXECUTE format('GRANT SELECT, INSERT ON <tables> TO %I', role_name);
  EXECUTE format('GRANT UPDATE (access_count) ON memories TO %I', role_name);
  EXECUTE format('GRANT UPDATE (version, nonce) ON partitions TO %I', role_name);
  EXECUTE format('GRANT UPDATE (memories, documents, length) ON keyword_segments TO %I', role_name);
  EXECUTE format('GRANT UPDATE (ids, segments) ON keyword_lists TO %I', role_name);
EXCEPTION WHEN feature_not_supported THEN
  NULL;
END $sql$;
REVOKE ALL ON FUNCTION mesh_grant, mesh_limit FROM PUBLIC;
