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

-- What the names of the caller's partitions start with; see `core.model.scope.partition` and `core.audit.chain_name`.
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
END $sql$;
REVOKE ALL ON FUNCTION mesh_grant FROM PUBLIC;
