-- The statements with which memory-mesh created the tables of schema 4 in an empty schema.
CREATE TABLE IF NOT EXISTS mesh_migrations (version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE memories (tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, revision bigint NOT NULL, number bigint NOT NULL, created_at text COLLATE "C" NOT NULL, user_id text COLLATE "C", agent_id text COLLATE "C", session_id text COLLATE "C", project text COLLATE "C", memory_type text COLLATE "C", reach text COLLATE "C", content text COLLATE "C", metadata jsonb, tags text[] COLLATE "C", category text COLLATE "C", keywords text[] COLLATE "C", speaker text COLLATE "C", turn bigint, importance double precision, author_confidence double precision, confidence double precision, updated_at text COLLATE "C", event_time text COLLATE "C", valid_from text COLLATE "C", valid_until text COLLATE "C", expires_at text COLLATE "C", last_observed text COLLATE "C", times_observed bigint, status text COLLATE "C", pinned boolean, pending boolean, superseded_by text COLLATE "C", supersedes text[] COLLATE "C", sources text[] COLLATE "C", heritage_chain jsonb, lesson_pattern_id text COLLATE "C", source_skill_id text COLLATE "C", key text COLLATE "C", fingerprint text COLLATE "C", salt text COLLATE "C", claim jsonb, claim_key text COLLATE "C", corroborations bigint, reinforcements bigint, disputes bigint, entities text[] COLLATE "C", feedback_score double precision, feedback_count bigint, embedding vector, model text COLLATE "C", access_count bigint NOT NULL DEFAULT 0, provenance jsonb GENERATED ALWAYS AS (metadata -> 'provenance') STORED, quarantine boolean GENERATED ALWAYS AS (status = 'quarantined') STORED, PRIMARY KEY (tenant, kind, id));
CREATE UNIQUE INDEX memories_by_id ON memories (id, kind) WHERE partition <> '';
CREATE TABLE memory_links (tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, revision bigint NOT NULL, number bigint NOT NULL, created_at text COLLATE "C" NOT NULL, user_id text COLLATE "C", agent_id text COLLATE "C", session_id text COLLATE "C", memory_type text COLLATE "C", reach text COLLATE "C", source_id text COLLATE "C", target_id text COLLATE "C", link_type text COLLATE "C", similarity double precision, PRIMARY KEY (tenant, kind, id));
CREATE UNIQUE INDEX memory_links_by_id ON memory_links (id, kind) WHERE partition <> '';
CREATE TABLE pending_conflicts (tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, revision bigint NOT NULL, number bigint NOT NULL, created_at text COLLATE "C" NOT NULL, user_id text COLLATE "C", agent_id text COLLATE "C", session_id text COLLATE "C", ref text COLLATE "C", status text COLLATE "C", target text COLLATE "C", why text COLLATE "C", detail jsonb, PRIMARY KEY (tenant, kind, id));
CREATE UNIQUE INDEX pending_conflicts_by_id ON pending_conflicts (id, kind) WHERE partition <> '';
CREATE TABLE yamo_blocks (tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, revision bigint NOT NULL, number bigint NOT NULL, created_at text COLLATE "C" NOT NULL, user_id text COLLATE "C", agent_id text COLLATE "C", session_id text COLLATE "C", ref text COLLATE "C", metadata jsonb, content_hash text COLLATE "C", chain text COLLATE "C", operation_type text COLLATE "C", yamo_text text COLLATE "C", block_hash text COLLATE "C", prev_hash text COLLATE "C", digest text COLLATE "C", memory_revision bigint, seal text COLLATE "C", PRIMARY KEY (tenant, kind, id));
CREATE UNIQUE INDEX yamo_blocks_by_id ON yamo_blocks (id, kind) WHERE partition <> '';
CREATE TABLE synthesized_skills (tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, revision bigint NOT NULL, number bigint NOT NULL, created_at text COLLATE "C" NOT NULL, user_id text COLLATE "C", agent_id text COLLATE "C", session_id text COLLATE "C", project text COLLATE "C", memory_type text COLLATE "C", reach text COLLATE "C", name text COLLATE "C", intent text COLLATE "C", content text COLLATE "C", metadata jsonb, tags text[] COLLATE "C", category text COLLATE "C", keywords text[] COLLATE "C", speaker text COLLATE "C", turn bigint, importance double precision, confidence double precision, trust double precision, updated_at text COLLATE "C", event_time text COLLATE "C", valid_from text COLLATE "C", valid_until text COLLATE "C", expires_at text COLLATE "C", last_observed text COLLATE "C", times_observed bigint, status text COLLATE "C", pinned boolean, pending boolean, superseded_by text COLLATE "C", supersedes text[] COLLATE "C", sources text[] COLLATE "C", heritage_chain jsonb, lesson_pattern_id text COLLATE "C", source_skill_id text COLLATE "C", key text COLLATE "C", fingerprint text COLLATE "C", salt text COLLATE "C", embedding vector, model text COLLATE "C", PRIMARY KEY (tenant, kind, id));
CREATE UNIQUE INDEX synthesized_skills_by_id ON synthesized_skills (id, kind) WHERE partition <> '';
CREATE TABLE records (tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, revision bigint NOT NULL, number bigint NOT NULL, created_at text COLLATE "C" NOT NULL, user_id text COLLATE "C", agent_id text COLLATE "C", session_id text COLLATE "C", memory_type text COLLATE "C", reach text COLLATE "C", ref text COLLATE "C", embedding vector, model text COLLATE "C", extra jsonb, PRIMARY KEY (tenant, kind, id));
CREATE UNIQUE INDEX records_by_id ON records (id, kind) WHERE partition <> '';
CREATE TABLE partitions (tenant text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, version bigint NOT NULL, nonce text NOT NULL, PRIMARY KEY (tenant, partition));
CREATE TABLE moves (tenant text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, version bigint NOT NULL, nonce text NOT NULL, kind text NOT NULL, id text NOT NULL, PRIMARY KEY (tenant, partition, version));
CREATE INDEX memories_by_age ON memories (partition, created_at DESC, number DESC, id DESC);
CREATE INDEX memories_by_scope ON memories (user_id, status, partition);
CREATE INDEX memories_by_fingerprint ON memories (fingerprint) WHERE fingerprint IS NOT NULL;
CREATE INDEX memories_by_claim ON memories (claim_key) WHERE claim_key IS NOT NULL;
CREATE INDEX memories_by_turn ON memories (partition, session_id, project, turn) WHERE turn IS NOT NULL;
CREATE INDEX memories_by_keyword ON memories USING gin (keywords);
CREATE INDEX memories_by_source ON memories USING gin (sources) WHERE sources <> '{}';
CREATE INDEX blocks_by_memory ON yamo_blocks (tenant, ref, memory_revision) WHERE ref IS NOT NULL;
CREATE UNIQUE INDEX blocks_by_number ON yamo_blocks (tenant, chain, number);
CREATE INDEX links_by_source ON memory_links (source_id);
CREATE INDEX links_by_target ON memory_links (target_id);
CREATE INDEX records_by_ref ON records (kind, ref) WHERE ref IS NOT NULL;
CREATE INDEX partitions_by_name ON partitions (partition);
CREATE INDEX IF NOT EXISTS memories_by_session ON memories (partition, session_id) WHERE session_id IS NOT NULL;
CREATE TABLE keyword_segments (tenant text COLLATE "C" NOT NULL, segment text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, user_id text COLLATE "C", agent_id text COLLATE "C", session_id text COLLATE "C", memory_type text COLLATE "C", reach text COLLATE "C", project text COLLATE "C", documents bigint NOT NULL, length bigint NOT NULL, PRIMARY KEY (tenant, segment));
CREATE TABLE keyword_counts (tenant text COLLATE "C" NOT NULL, segment text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, word text COLLATE "C" NOT NULL, documents bigint NOT NULL, PRIMARY KEY (tenant, segment, word));
CREATE INDEX segments_by_partition ON keyword_segments (partition);
CREATE INDEX keyword_counts_without_documents ON keyword_counts (partition) WHERE documents <= 0;
-- Tables of neolata that are computed from the others. They show what the reader may see of those.

CREATE VIEW memory_archive WITH (security_invoker) AS SELECT * FROM memories WHERE status = 'archived';

-- As `core.graph.episodes` splits them by default: a session, and within it wherever nothing was stored for half an hour.
CREATE VIEW episodes WITH (security_invoker) AS
  WITH stored AS (
    SELECT tenant, user_id, agent_id, session_id, coalesce(event_time, created_at) AS at, turn, number, id FROM memories
    WHERE status = 'active' AND coalesce(memory_type, '') NOT IN ('lesson', 'reflection')
  ), timed AS (
    SELECT *, at::timestamptz - lag(at::timestamptz) OVER session > interval '30 minutes' AS is_first FROM stored
    WINDOW session AS (PARTITION BY tenant, agent_id, session_id ORDER BY at, turn, number, id)
  ), split AS (
    SELECT *, count(*) FILTER (WHERE is_first) OVER session AS episode FROM timed
    WINDOW session AS (PARTITION BY tenant, agent_id, session_id ORDER BY at, turn, number, id)
  )
  SELECT tenant, user_id, agent_id, session_id, min(at) AS started_at, max(at) AS ended_at, count(*) AS memories,
    (array_agg(id ORDER BY at, turn, number, id))[1] AS id
  FROM split GROUP BY tenant, user_id, agent_id, session_id, episode;

-- Memories that links connect. The first id names the cluster, and its most frequent keyword labels it.
CREATE VIEW memory_clusters WITH (security_invoker) AS
  WITH RECURSIVE pairs AS (
    SELECT tenant, source_id AS one, target_id AS other FROM memory_links
    UNION SELECT tenant, target_id, source_id FROM memory_links
  ), connected AS (
    SELECT tenant, one, one AS other FROM pairs
    UNION SELECT c.tenant, c.one, p.other FROM connected c JOIN pairs p ON p.tenant = c.tenant AND p.one = c.other
  ), members AS (
    SELECT tenant, one AS memory_id, min(other) AS id FROM connected GROUP BY tenant, one
  )
  SELECT m.tenant, m.id, count(*) AS size, array_agg(m.memory_id ORDER BY m.memory_id) AS memory_ids,
    (SELECT mode() WITHIN GROUP (ORDER BY word) FROM members same JOIN memories t ON t.tenant = same.tenant AND t.id = same.memory_id
      CROSS JOIN LATERAL unnest(t.keywords) word WHERE same.tenant = m.tenant AND same.id = m.id) AS label
  FROM members m GROUP BY m.tenant, m.id;
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
      AND (m.expires_at IS NULL OR m.expires_at::timestamptz > now()) AND vector_dims(m.embedding) = vector_dims(query_embedding)
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
      AND (m.expires_at IS NULL OR m.expires_at::timestamptz > now()) AND vector_dims(m.embedding) = vector_dims(query_embedding)
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
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON memories, memory_links, pending_conflicts, yamo_blocks, synthesized_skills, records, partitions, moves, keyword_segments, keyword_counts TO %I', role_name);
  EXECUTE format('GRANT SELECT ON mesh_migrations, memory_archive, episodes, memory_clusters TO %I', role_name);
END $sql$;
REVOKE ALL ON FUNCTION mesh_grant FROM PUBLIC;
-- The functions of the PostgreSQL and Supabase stores. All take and return JSON, and run with the rights of the caller.
-- `tables.description` fills in {"types": {"id": "string", "kind": "string", "partition": "string", "revision": "number", "number": "number", "created_at": "string", "user_id": "string", "agent_id": "string", "session_id": "string", "project": "string", "memory_type": "string", "reach": "string", "ref": "string", "name": "string", "intent": "string", "content": "string", "metadata": "object", "tags": "list", "category": "string", "keywords": "list", "speaker": "string", "turn": "number", "importance": "number", "confidence": "number", "trust": "number", "updated_at": "string", "event_time": "string", "valid_from": "string", "valid_until": "string", "expires_at": "string", "last_observed": "string", "times_observed": "number", "status": "string", "pinned": "boolean", "pending": "boolean", "superseded_by": "string", "supersedes": "list", "sources": "list", "heritage_chain": "object", "lesson_pattern_id": "string", "source_skill_id": "string", "key": "string", "fingerprint": "string", "salt": "string", "claim": "object", "claim_key": "string", "corroborations": "number", "reinforcements": "number", "disputes": "number", "entities": "list", "feedback_score": "number", "feedback_count": "number", "content_hash": "string", "source": "string", "section": "list", "text_start": "number", "text_end": "number", "target": "string", "link_type": "string", "similarity": "number", "action": "string", "before": "object", "why": "string", "detail": "object", "hook": "string", "chain": "string", "operation_type": "string", "yamo_text": "string", "block_hash": "string", "prev_hash": "string", "digest": "string", "memory_revision": "number", "seal": "string", "signature": "string", "key_id": "string", "access_count": "number", "last_accessed": "string", "request": "string"}, "kinds": {"memory": {"table": "memories", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "project": "t.project", "memory_type": "t.memory_type", "reach": "t.reach", "content": "t.content", "metadata": "t.metadata", "tags": "t.tags", "category": "t.category", "keywords": "t.keywords", "speaker": "t.speaker", "turn": "t.turn", "importance": "t.importance", "confidence": "t.author_confidence", "trust": "t.confidence", "updated_at": "t.updated_at", "event_time": "t.event_time", "valid_from": "t.valid_from", "valid_until": "t.valid_until", "expires_at": "t.expires_at", "last_observed": "t.last_observed", "times_observed": "t.times_observed", "status": "t.status", "pinned": "t.pinned", "pending": "t.pending", "superseded_by": "t.superseded_by", "supersedes": "t.supersedes", "sources": "t.sources", "heritage_chain": "t.heritage_chain", "lesson_pattern_id": "t.lesson_pattern_id", "source_skill_id": "t.source_skill_id", "key": "t.key", "fingerprint": "t.fingerprint", "salt": "t.salt", "claim": "t.claim", "claim_key": "t.claim_key", "corroborations": "t.corroborations", "reinforcements": "t.reinforcements", "disputes": "t.disputes", "entities": "t.entities", "feedback_score": "t.feedback_score", "feedback_count": "t.feedback_count"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, NULL, (SELECT json_build_array(b.memory_revision, b.content_hash) FROM yamo_blocks b WHERE b.tenant = t.tenant AND b.ref = t.id AND b.content_hash IS NOT NULL AND b.memory_revision IS NOT NULL ORDER BY b.memory_revision DESC, b.content_hash DESC LIMIT 1), (SELECT u.extra FROM records u WHERE u.tenant = t.tenant AND u.kind = 'usage' AND u.id = t.id), t.user_id, t.agent_id, t.session_id, t.project, t.memory_type, t.reach, t.content, t.metadata, t.tags, t.category, t.keywords, t.speaker, t.turn, t.importance, t.author_confidence, t.confidence, t.updated_at, t.event_time, t.valid_from, t.valid_until, t.expires_at, t.last_observed, t.times_observed, t.status, t.pinned, t.pending, t.superseded_by, t.supersedes, t.sources, t.heritage_chain, t.lesson_pattern_id, t.source_skill_id, t.key, t.fingerprint, t.salt, t.claim, t.claim_key, t.corroborations, t.reinforcements, t.disputes, t.entities, t.feedback_score, t.feedback_count)"}, "skill": {"table": "synthesized_skills", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "project": "t.project", "memory_type": "t.memory_type", "reach": "t.reach", "name": "t.name", "intent": "t.intent", "content": "t.content", "metadata": "t.metadata", "tags": "t.tags", "category": "t.category", "keywords": "t.keywords", "speaker": "t.speaker", "turn": "t.turn", "importance": "t.importance", "confidence": "t.confidence", "trust": "t.trust", "updated_at": "t.updated_at", "event_time": "t.event_time", "valid_from": "t.valid_from", "valid_until": "t.valid_until", "expires_at": "t.expires_at", "last_observed": "t.last_observed", "times_observed": "t.times_observed", "status": "t.status", "pinned": "t.pinned", "pending": "t.pending", "superseded_by": "t.superseded_by", "supersedes": "t.supersedes", "sources": "t.sources", "heritage_chain": "t.heritage_chain", "lesson_pattern_id": "t.lesson_pattern_id", "source_skill_id": "t.source_skill_id", "key": "t.key", "fingerprint": "t.fingerprint", "salt": "t.salt"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, NULL, (SELECT json_build_array(b.memory_revision, b.content_hash) FROM yamo_blocks b WHERE b.tenant = t.tenant AND b.ref = t.id AND b.content_hash IS NOT NULL AND b.memory_revision IS NOT NULL ORDER BY b.memory_revision DESC, b.content_hash DESC LIMIT 1), (SELECT u.extra FROM records u WHERE u.tenant = t.tenant AND u.kind = 'usage' AND u.id = t.id), t.user_id, t.agent_id, t.session_id, t.project, t.memory_type, t.reach, t.name, t.intent, t.content, t.metadata, t.tags, t.category, t.keywords, t.speaker, t.turn, t.importance, t.confidence, t.trust, t.updated_at, t.event_time, t.valid_from, t.valid_until, t.expires_at, t.last_observed, t.times_observed, t.status, t.pinned, t.pending, t.superseded_by, t.supersedes, t.sources, t.heritage_chain, t.lesson_pattern_id, t.source_skill_id, t.key, t.fingerprint, t.salt)"}, "passage": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "memory_type": "t.memory_type", "reach": "t.reach", "ref": "t.ref", "content_hash": "(t.extra ->> 'content_hash') COLLATE \"C\"", "source": "(t.extra ->> 'source') COLLATE \"C\"", "section": "mesh_texts(t.extra -> 'section')", "text_start": "(t.extra ->> 'text_start')::bigint", "text_end": "(t.extra ->> 'text_end')::bigint"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.memory_type, t.reach, t.ref)"}, "link": {"table": "memory_links", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "memory_type": "t.memory_type", "reach": "t.reach", "ref": "t.source_id", "target": "t.target_id", "link_type": "t.link_type", "similarity": "t.similarity"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, NULL, NULL, NULL, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.memory_type, t.reach, t.source_id, t.target_id, t.link_type, t.similarity)"}, "change": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "action": "(t.extra ->> 'action') COLLATE \"C\"", "before": "(t.extra -> 'before')", "why": "(t.extra ->> 'why') COLLATE \"C\"", "detail": "(t.extra -> 'detail')"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "block": {"table": "yamo_blocks", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "metadata": "t.metadata", "content_hash": "t.content_hash", "chain": "t.chain", "operation_type": "t.operation_type", "yamo_text": "t.yamo_text", "block_hash": "t.block_hash", "prev_hash": "t.prev_hash", "digest": "t.digest", "memory_revision": "t.memory_revision", "seal": "t.seal"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, NULL, NULL, NULL, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref, t.metadata, t.content_hash, t.chain, t.operation_type, t.yamo_text, t.block_hash, t.prev_hash, t.digest, t.memory_revision, t.seal)"}, "head": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "chain": "(t.extra ->> 'chain') COLLATE \"C\"", "block_hash": "(t.extra ->> 'block_hash') COLLATE \"C\"", "seal": "(t.extra ->> 'seal') COLLATE \"C\"", "signature": "(t.extra ->> 'signature') COLLATE \"C\"", "key_id": "(t.extra ->> 'key_id') COLLATE \"C\""}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "receipt": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "request": "(t.extra ->> 'request') COLLATE \"C\""}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "meta": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "detail": "(t.extra -> 'detail')"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "usage": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "access_count": "(t.extra ->> 'access_count')::bigint", "last_accessed": "(t.extra ->> 'last_accessed') COLLATE \"C\""}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "sighting": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "metadata": "(t.extra -> 'metadata')", "trust": "(t.extra ->> 'trust')::double precision", "last_observed": "(t.extra ->> 'last_observed') COLLATE \"C\"", "times_observed": "(t.extra ->> 'times_observed')::bigint"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "conflict": {"table": "pending_conflicts", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "status": "t.status", "target": "t.target", "why": "t.why", "detail": "t.detail"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, NULL, NULL, NULL, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref, t.status, t.target, t.why, t.detail)"}, "event": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "action": "(t.extra ->> 'action') COLLATE \"C\"", "detail": "(t.extra -> 'detail')", "hook": "(t.extra ->> 'hook') COLLATE \"C\""}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}}, "columns": {"memories": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "project", "memory_type", "reach", "content", "metadata", "tags", "category", "keywords", "speaker", "turn", "importance", "author_confidence", "confidence", "updated_at", "event_time", "valid_from", "valid_until", "expires_at", "last_observed", "times_observed", "status", "pinned", "pending", "superseded_by", "supersedes", "sources", "heritage_chain", "lesson_pattern_id", "source_skill_id", "key", "fingerprint", "salt", "claim", "claim_key", "corroborations", "reinforcements", "disputes", "entities", "feedback_score", "feedback_count", "embedding", "model"], "memory_links": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "memory_type", "reach", "source_id", "target_id", "link_type", "similarity"], "pending_conflicts": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "ref", "status", "target", "why", "detail"], "yamo_blocks": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "ref", "metadata", "content_hash", "chain", "operation_type", "yamo_text", "block_hash", "prev_hash", "digest", "memory_revision", "seal"], "synthesized_skills": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "project", "memory_type", "reach", "name", "intent", "content", "metadata", "tags", "category", "keywords", "speaker", "turn", "importance", "confidence", "trust", "updated_at", "event_time", "valid_from", "valid_until", "expires_at", "last_observed", "times_observed", "status", "pinned", "pending", "superseded_by", "supersedes", "sources", "heritage_chain", "lesson_pattern_id", "source_skill_id", "key", "fingerprint", "salt", "embedding", "model"], "records": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "memory_type", "reach", "ref", "embedding", "model", "extra"]}}, and `VERSION` 4.

CREATE OR REPLACE FUNCTION mesh_tables() RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $sql$ SELECT $json${"types": {"id": "string", "kind": "string", "partition": "string", "revision": "number", "number": "number", "created_at": "string", "user_id": "string", "agent_id": "string", "session_id": "string", "project": "string", "memory_type": "string", "reach": "string", "ref": "string", "name": "string", "intent": "string", "content": "string", "metadata": "object", "tags": "list", "category": "string", "keywords": "list", "speaker": "string", "turn": "number", "importance": "number", "confidence": "number", "trust": "number", "updated_at": "string", "event_time": "string", "valid_from": "string", "valid_until": "string", "expires_at": "string", "last_observed": "string", "times_observed": "number", "status": "string", "pinned": "boolean", "pending": "boolean", "superseded_by": "string", "supersedes": "list", "sources": "list", "heritage_chain": "object", "lesson_pattern_id": "string", "source_skill_id": "string", "key": "string", "fingerprint": "string", "salt": "string", "claim": "object", "claim_key": "string", "corroborations": "number", "reinforcements": "number", "disputes": "number", "entities": "list", "feedback_score": "number", "feedback_count": "number", "content_hash": "string", "source": "string", "section": "list", "text_start": "number", "text_end": "number", "target": "string", "link_type": "string", "similarity": "number", "action": "string", "before": "object", "why": "string", "detail": "object", "hook": "string", "chain": "string", "operation_type": "string", "yamo_text": "string", "block_hash": "string", "prev_hash": "string", "digest": "string", "memory_revision": "number", "seal": "string", "signature": "string", "key_id": "string", "access_count": "number", "last_accessed": "string", "request": "string"}, "kinds": {"memory": {"table": "memories", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "project": "t.project", "memory_type": "t.memory_type", "reach": "t.reach", "content": "t.content", "metadata": "t.metadata", "tags": "t.tags", "category": "t.category", "keywords": "t.keywords", "speaker": "t.speaker", "turn": "t.turn", "importance": "t.importance", "confidence": "t.author_confidence", "trust": "t.confidence", "updated_at": "t.updated_at", "event_time": "t.event_time", "valid_from": "t.valid_from", "valid_until": "t.valid_until", "expires_at": "t.expires_at", "last_observed": "t.last_observed", "times_observed": "t.times_observed", "status": "t.status", "pinned": "t.pinned", "pending": "t.pending", "superseded_by": "t.superseded_by", "supersedes": "t.supersedes", "sources": "t.sources", "heritage_chain": "t.heritage_chain", "lesson_pattern_id": "t.lesson_pattern_id", "source_skill_id": "t.source_skill_id", "key": "t.key", "fingerprint": "t.fingerprint", "salt": "t.salt", "claim": "t.claim", "claim_key": "t.claim_key", "corroborations": "t.corroborations", "reinforcements": "t.reinforcements", "disputes": "t.disputes", "entities": "t.entities", "feedback_score": "t.feedback_score", "feedback_count": "t.feedback_count"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, NULL, (SELECT json_build_array(b.memory_revision, b.content_hash) FROM yamo_blocks b WHERE b.tenant = t.tenant AND b.ref = t.id AND b.content_hash IS NOT NULL AND b.memory_revision IS NOT NULL ORDER BY b.memory_revision DESC, b.content_hash DESC LIMIT 1), (SELECT u.extra FROM records u WHERE u.tenant = t.tenant AND u.kind = 'usage' AND u.id = t.id), t.user_id, t.agent_id, t.session_id, t.project, t.memory_type, t.reach, t.content, t.metadata, t.tags, t.category, t.keywords, t.speaker, t.turn, t.importance, t.author_confidence, t.confidence, t.updated_at, t.event_time, t.valid_from, t.valid_until, t.expires_at, t.last_observed, t.times_observed, t.status, t.pinned, t.pending, t.superseded_by, t.supersedes, t.sources, t.heritage_chain, t.lesson_pattern_id, t.source_skill_id, t.key, t.fingerprint, t.salt, t.claim, t.claim_key, t.corroborations, t.reinforcements, t.disputes, t.entities, t.feedback_score, t.feedback_count)"}, "skill": {"table": "synthesized_skills", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "project": "t.project", "memory_type": "t.memory_type", "reach": "t.reach", "name": "t.name", "intent": "t.intent", "content": "t.content", "metadata": "t.metadata", "tags": "t.tags", "category": "t.category", "keywords": "t.keywords", "speaker": "t.speaker", "turn": "t.turn", "importance": "t.importance", "confidence": "t.confidence", "trust": "t.trust", "updated_at": "t.updated_at", "event_time": "t.event_time", "valid_from": "t.valid_from", "valid_until": "t.valid_until", "expires_at": "t.expires_at", "last_observed": "t.last_observed", "times_observed": "t.times_observed", "status": "t.status", "pinned": "t.pinned", "pending": "t.pending", "superseded_by": "t.superseded_by", "supersedes": "t.supersedes", "sources": "t.sources", "heritage_chain": "t.heritage_chain", "lesson_pattern_id": "t.lesson_pattern_id", "source_skill_id": "t.source_skill_id", "key": "t.key", "fingerprint": "t.fingerprint", "salt": "t.salt"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, NULL, (SELECT json_build_array(b.memory_revision, b.content_hash) FROM yamo_blocks b WHERE b.tenant = t.tenant AND b.ref = t.id AND b.content_hash IS NOT NULL AND b.memory_revision IS NOT NULL ORDER BY b.memory_revision DESC, b.content_hash DESC LIMIT 1), (SELECT u.extra FROM records u WHERE u.tenant = t.tenant AND u.kind = 'usage' AND u.id = t.id), t.user_id, t.agent_id, t.session_id, t.project, t.memory_type, t.reach, t.name, t.intent, t.content, t.metadata, t.tags, t.category, t.keywords, t.speaker, t.turn, t.importance, t.confidence, t.trust, t.updated_at, t.event_time, t.valid_from, t.valid_until, t.expires_at, t.last_observed, t.times_observed, t.status, t.pinned, t.pending, t.superseded_by, t.supersedes, t.sources, t.heritage_chain, t.lesson_pattern_id, t.source_skill_id, t.key, t.fingerprint, t.salt)"}, "passage": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "memory_type": "t.memory_type", "reach": "t.reach", "ref": "t.ref", "content_hash": "(t.extra ->> 'content_hash') COLLATE \"C\"", "source": "(t.extra ->> 'source') COLLATE \"C\"", "section": "mesh_texts(t.extra -> 'section')", "text_start": "(t.extra ->> 'text_start')::bigint", "text_end": "(t.extra ->> 'text_end')::bigint"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.memory_type, t.reach, t.ref)"}, "link": {"table": "memory_links", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "memory_type": "t.memory_type", "reach": "t.reach", "ref": "t.source_id", "target": "t.target_id", "link_type": "t.link_type", "similarity": "t.similarity"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, NULL, NULL, NULL, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.memory_type, t.reach, t.source_id, t.target_id, t.link_type, t.similarity)"}, "change": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "action": "(t.extra ->> 'action') COLLATE \"C\"", "before": "(t.extra -> 'before')", "why": "(t.extra ->> 'why') COLLATE \"C\"", "detail": "(t.extra -> 'detail')"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "block": {"table": "yamo_blocks", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "metadata": "t.metadata", "content_hash": "t.content_hash", "chain": "t.chain", "operation_type": "t.operation_type", "yamo_text": "t.yamo_text", "block_hash": "t.block_hash", "prev_hash": "t.prev_hash", "digest": "t.digest", "memory_revision": "t.memory_revision", "seal": "t.seal"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, NULL, NULL, NULL, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref, t.metadata, t.content_hash, t.chain, t.operation_type, t.yamo_text, t.block_hash, t.prev_hash, t.digest, t.memory_revision, t.seal)"}, "head": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "chain": "(t.extra ->> 'chain') COLLATE \"C\"", "block_hash": "(t.extra ->> 'block_hash') COLLATE \"C\"", "seal": "(t.extra ->> 'seal') COLLATE \"C\"", "signature": "(t.extra ->> 'signature') COLLATE \"C\"", "key_id": "(t.extra ->> 'key_id') COLLATE \"C\""}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "receipt": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "request": "(t.extra ->> 'request') COLLATE \"C\""}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "meta": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "detail": "(t.extra -> 'detail')"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "usage": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "access_count": "(t.extra ->> 'access_count')::bigint", "last_accessed": "(t.extra ->> 'last_accessed') COLLATE \"C\""}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "sighting": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "metadata": "(t.extra -> 'metadata')", "trust": "(t.extra ->> 'trust')::double precision", "last_observed": "(t.extra ->> 'last_observed') COLLATE \"C\"", "times_observed": "(t.extra ->> 'times_observed')::bigint"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}, "conflict": {"table": "pending_conflicts", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "status": "t.status", "target": "t.target", "why": "t.why", "detail": "t.detail"}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, NULL, NULL, NULL, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref, t.status, t.target, t.why, t.detail)"}, "event": {"table": "records", "fields": {"id": "t.id", "kind": "t.kind", "partition": "t.partition", "revision": "t.revision", "number": "t.number", "created_at": "t.created_at", "user_id": "t.user_id", "agent_id": "t.agent_id", "session_id": "t.session_id", "ref": "t.ref", "action": "(t.extra ->> 'action') COLLATE \"C\"", "detail": "(t.extra -> 'detail')", "hook": "(t.extra ->> 'hook') COLLATE \"C\""}, "reading": "json_build_array(t.id, t.partition, t.created_at, t.revision, t.number, encode(vector_send(t.embedding), 'base64'), t.model, t.extra, NULL, NULL, t.user_id, t.agent_id, t.session_id, t.ref)"}}, "columns": {"memories": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "project", "memory_type", "reach", "content", "metadata", "tags", "category", "keywords", "speaker", "turn", "importance", "author_confidence", "confidence", "updated_at", "event_time", "valid_from", "valid_until", "expires_at", "last_observed", "times_observed", "status", "pinned", "pending", "superseded_by", "supersedes", "sources", "heritage_chain", "lesson_pattern_id", "source_skill_id", "key", "fingerprint", "salt", "claim", "claim_key", "corroborations", "reinforcements", "disputes", "entities", "feedback_score", "feedback_count", "embedding", "model"], "memory_links": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "memory_type", "reach", "source_id", "target_id", "link_type", "similarity"], "pending_conflicts": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "ref", "status", "target", "why", "detail"], "yamo_blocks": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "ref", "metadata", "content_hash", "chain", "operation_type", "yamo_text", "block_hash", "prev_hash", "digest", "memory_revision", "seal"], "synthesized_skills": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "project", "memory_type", "reach", "name", "intent", "content", "metadata", "tags", "category", "keywords", "speaker", "turn", "importance", "confidence", "trust", "updated_at", "event_time", "valid_from", "valid_until", "expires_at", "last_observed", "times_observed", "status", "pinned", "pending", "superseded_by", "supersedes", "sources", "heritage_chain", "lesson_pattern_id", "source_skill_id", "key", "fingerprint", "salt", "embedding", "model"], "records": ["id", "kind", "partition", "revision", "number", "created_at", "user_id", "agent_id", "session_id", "memory_type", "reach", "ref", "embedding", "model", "extra"]}}$json$::jsonb $sql$;

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
  IF payload ->> 'schema' IS DISTINCT FROM '4' THEN
    RAISE EXCEPTION 'the store has schema 4' USING ERRCODE = 'MM003', HINT = '4';
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
CREATE OR REPLACE FUNCTION mesh_test(op text, type text, value text, literals jsonb) RETURNS text LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $sql$
  SELECT CASE
    WHEN op = 'like' THEN CASE type WHEN 'string' THEN format('%s LIKE %L ESCAPE ''''', value, literals ->> 0) ELSE 'NULL::boolean' END
    WHEN op = 'in' THEN format('%s = ANY (%L::%s[])', value, ARRAY(SELECT jsonb_array_elements_text(literals)),
      CASE type WHEN 'number' THEN 'float8' WHEN 'string' THEN 'text' ELSE type END)
    WHEN type = 'number' AND literals ->> 0 ~ '^-?\d{1,15}$' THEN format('%s %s %s', value, op, literals ->> 0)
    ELSE format('%s %s %L::%s', value, op, literals ->> 0, CASE type WHEN 'number' THEN 'float8' WHEN 'string' THEN 'text' ELSE type END)
  END
$sql$;

-- A list satisfies a test that one of its items does; "<>" means that no item is equal.
CREATE OR REPLACE FUNCTION mesh_list_test(op text, value text, literals jsonb) RETURNS text LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $sql$
  SELECT CASE
    WHEN op IN ('=', 'in') THEN format('%s && %L::text[]', value, ARRAY(SELECT jsonb_array_elements_text(literals)))
    WHEN op = '<>' THEN format('NOT (%s && %L::text[])', value, ARRAY(SELECT jsonb_array_elements_text(literals)))
    ELSE format('CASE WHEN %1$s IS NOT NULL THEN EXISTS (SELECT 1 FROM unnest(%1$s) item WHERE %2$s) END', value,
      mesh_test(op, 'string', 'item COLLATE "C"', literals))
  END
$sql$;

CREATE OR REPLACE FUNCTION mesh_source(of_kind text, given jsonb) RETURNS text LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $sql$
  SELECT format('%I t WHERE t.kind = %L AND (%s)', mesh_tables() -> 'kinds' -> of_kind ->> 'table', of_kind, mesh_condition(of_kind, given))
$sql$;

-- --- reads ---

-- kind, where, limit?, after? (created_at, partition, number, id): rows as arrays, newest first.
CREATE OR REPLACE FUNCTION mesh_find(payload jsonb) RETURNS SETOF json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  of_kind text := payload ->> 'kind';
  page jsonb := payload -> 'after';
BEGIN
  PERFORM mesh_check(payload);
  RETURN QUERY EXECUTE format(
    'SELECT %s FROM (SELECT * FROM %s%s ORDER BY t.created_at DESC, t.partition DESC, t.number DESC, t.id DESC LIMIT %L) t '
    'ORDER BY t.created_at DESC, t.partition DESC, t.number DESC, t.id DESC',
    mesh_tables() -> 'kinds' -> of_kind ->> 'reading', mesh_source(of_kind, payload -> 'where'),
    CASE WHEN page ->> 0 IS NULL THEN '' ELSE
      format(' AND (t.created_at, t.partition, t.number, t.id) < (%L, %L, %s, %L)', page ->> 0, page ->> 1, (page ->> 2)::bigint, page ->> 3) END,
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

-- Equal values mean that nothing was written in between.
CREATE OR REPLACE FUNCTION mesh_data_version(payload jsonb) RETURNS text LANGUAGE sql STABLE AS $sql$
  SELECT pg_current_snapshot()::text
$sql$;

-- kind, model, dimension, vector, where, limit, index?: the owners of the nearest vectors, each with a vector as base64.
-- pgvector computes in 32 bits. So all vectors within a small distance of the last one are returned, and those that 32 bits cannot
-- compare; the caller ranks them in 64 bits.
-- Of more than 20000 memories, an index of the model finds the nearest, if there is one and the planner prefers it.
CREATE OR REPLACE FUNCTION mesh_nearest(payload jsonb) RETURNS SETOF json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  of_kind text := payload ->> 'kind';
  comparable text := format('t.model = %L AND vector_dims(t.embedding) = %s', payload ->> 'model', (payload ->> 'dimension')::int);
  source text := mesh_source(of_kind, payload -> 'where');
  parts text[] := ARRAY[format('SELECT t.id AS owner, t.embedding FROM %s AND %s', source, comparable)];
  nearest text := format(' ORDER BY t.embedding::vector(%s) <=> %L LIMIT %s', (payload ->> 'dimension')::int, payload ->> 'vector', 2 * (payload ->> 'limit')::bigint + 20);
  owners text;
  found bigint;
BEGIN
  PERFORM mesh_check(payload);
  IF of_kind = 'memory' THEN
    parts := parts || format('SELECT t.ref AS owner, t.embedding FROM records t WHERE t.kind = ''passage'' AND %s AND (t.tenant, t.ref) IN (SELECT t.tenant, t.id FROM %s)',
      comparable, source);
  END IF;
  owners := array_to_string(parts, ' UNION ALL ');
  EXECUTE format('SELECT count(*) FROM (SELECT 1 FROM %s AND t.model = %L LIMIT 20000 + 1) capped', source, payload ->> 'model') INTO found;
  IF found > 20000 THEN
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', '200', true);
    RETURN QUERY EXECUTE format('SELECT json_build_array(owner, encode(vector_send(embedding), ''base64'')) FROM (%s) near',
      '(' || array_to_string(parts, nearest || ') UNION ALL (') || nearest || ')');
    GET DIAGNOSTICS found = ROW_COUNT;
    IF found >= 2 * (payload ->> 'limit')::bigint THEN
      RETURN;
    END IF;  -- the index gave up before it found enough that meet the condition
  END IF;
  RETURN QUERY EXECUTE format(
    'WITH given AS MATERIALIZED (%s), compared AS MATERIALIZED (SELECT owner, embedding, CASE WHEN vector_norm(embedding) BETWEEN 1e-9 AND 1e9 '
    'AND vector_norm(%2$L) BETWEEN 1e-9 AND 1e9 THEN embedding <=> %2$L ELSE -1 END AS distance FROM given), '
    'last AS (SELECT min(distance) AS distance FROM compared WHERE distance >= 0 GROUP BY owner ORDER BY 1 OFFSET greatest(%3$s - 1, 0) LIMIT 1) '
    'SELECT json_build_array(owner, encode(vector_send(embedding), ''base64'')) FROM compared '
    'WHERE distance <= coalesce((SELECT distance FROM last), 2) + 1e-5 AND %3$s > 0', owners, payload ->> 'vector', (payload ->> 'limit')::bigint);
END $sql$;

-- --- writes ---

-- The rows of a change that are stored now.
CREATE OR REPLACE FUNCTION mesh_stored(keys jsonb) RETURNS TABLE (source text, kind text, id text, tenant text, partition text, revision bigint)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
BEGIN
  FOR source IN SELECT DISTINCT mesh_tables() -> 'kinds' -> (one ->> 'kind') ->> 'table' FROM jsonb_array_elements(keys) one LOOP
    RETURN QUERY EXECUTE format('SELECT %1$L, t.kind::text, t.id::text, t.tenant::text, t.partition::text, t.revision FROM %1$I t '
      'WHERE (t.id, t.kind) IN (SELECT one ->> ''id'', one ->> ''kind'' FROM jsonb_array_elements($1) one)', source) USING keys;
  END LOOP;
END $sql$;

-- Applies a change as one. The caller's tenant is that of all new rows, or null if they are of several.
--   nonce    a random name of this change
--   seen     partition -> version at which the caller read it
--   deletes  [{kind, id}, …]
--   puts     [{column: value, …, replaces, place}, …], vectors as text
--   retry    true if an earlier call with this nonce may have been committed
-- MM001: an id is taken. MM002: what the caller read has changed. MM003: the store has another schema.
CREATE OR REPLACE FUNCTION mesh_apply(tenant text, payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY INVOKER SET search_path FROM CURRENT AS $sql$
#variable_conflict use_column
DECLARE
  moving CONSTANT text[] := ARRAY['memory', 'skill', 'passage', 'link'];
  puts jsonb := coalesce(payload -> 'puts', '[]');
  keys jsonb := coalesce(payload -> 'deletes', '[]');
  seen jsonb := coalesce(payload -> 'seen', '{}');
  old jsonb;
  touched text[];
  moved jsonb;
  versions jsonb;
  source text;
  columns text;
  gone bigint;
BEGIN
  PERFORM mesh_check(payload);
  IF tenant IS NOT NULL AND EXISTS (SELECT 1 FROM jsonb_array_elements(puts) one WHERE mesh_tenant(one ->> 'partition') <> tenant) THEN
    RAISE EXCEPTION 'a row of the change belongs to another user than %', tenant USING ERRCODE = 'MM004';
  END IF;
  SELECT keys || coalesce(jsonb_agg(jsonb_build_object('kind', one -> 'kind', 'id', one -> 'id', 'replaces', one -> 'replaces')), '[]')
    INTO keys FROM jsonb_array_elements(puts) one WHERE (one ->> 'replaces')::bigint > 0;
  SELECT coalesce(jsonb_agg(stored), '[]') INTO old FROM mesh_stored(keys) stored;

  -- Locks in one order, so that two changes never wait for each other.
  SELECT coalesce(array_agg(DISTINCT name ORDER BY name), '{}') INTO touched FROM (
    SELECT one ->> 'partition' AS name FROM jsonb_array_elements(puts || old) one WHERE one ->> 'kind' = ANY (moving)
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
    RETURN (SELECT jsonb_object_agg(p.partition, p.version) FROM partitions p WHERE p.partition = ANY (touched) AND p.nonce = payload ->> 'nonce');
  END IF;
  IF EXISTS (SELECT 1 FROM jsonb_each_text(seen) s LEFT JOIN partitions p ON p.partition = s.key WHERE p.version IS DISTINCT FROM s.value::bigint) THEN
    RAISE EXCEPTION 'a partition has changed' USING ERRCODE = 'MM002';
  END IF;

  -- A replaced row is deleted and inserted: it may have moved to another user.
  PERFORM mesh_count_keywords(old, -1);
  SELECT count(*) INTO gone FROM jsonb_array_elements(keys) one WHERE one ? 'replaces';
  FOR source IN SELECT DISTINCT one ->> 'source' FROM jsonb_array_elements(old) one LOOP
    EXECUTE format('WITH gone AS (DELETE FROM %I t USING jsonb_to_recordset($1) AS o(kind text, id text, tenant text, source text), '
      'jsonb_to_recordset($2) AS k(kind text, id text, replaces bigint) WHERE t.tenant = o.tenant AND t.kind = o.kind AND t.id = o.id '
      'AND k.kind = o.kind AND k.id = o.id AND o.source = %L AND (k.replaces IS NULL OR k.replaces = t.revision) '
      'RETURNING k.replaces) SELECT $3 - count(replaces) FROM gone', source, source) INTO gone USING old, keys, gone;
  END LOOP;
  IF gone > 0 THEN
    RAISE EXCEPTION 'a row is not at the revision that was read' USING ERRCODE = 'MM002';
  END IF;
  FOR source IN SELECT DISTINCT mesh_tables() -> 'kinds' -> (one ->> 'kind') ->> 'table' FROM jsonb_array_elements(puts) one LOOP
    SELECT string_agg(name, ', ') INTO columns FROM jsonb_array_elements_text(mesh_tables() -> 'columns' -> source) name;
    EXECUTE format('INSERT INTO %1$I (tenant, %2$s) SELECT mesh_tenant(partition), %2$s FROM jsonb_array_elements($1) one '
      'CROSS JOIN LATERAL jsonb_populate_record(null::%1$I, one) WHERE one ->> ''kind'' = ANY ($2)',
      source, columns) USING puts, ARRAY(SELECT key FROM jsonb_each(mesh_tables() -> 'kinds') WHERE value ->> 'table' = source);
  END LOOP;
  PERFORM mesh_count_keywords(puts, 1);
  IF EXISTS (SELECT 1 FROM jsonb_array_elements(puts) one WHERE one ->> 'kind' = 'usage' OR one ->> 'kind' = 'memory' AND one ->> 'replaces' <> '0') THEN
    UPDATE memories m SET access_count = (u.extra ->> 'access_count')::bigint FROM records u WHERE u.tenant = m.tenant AND u.kind = 'usage' AND u.id = m.id
      AND m.id IN (SELECT one ->> 'id' FROM jsonb_array_elements(puts) one) AND u.extra ->> 'access_count' <> m.access_count::text;
  END IF;

  -- The log: what was deleted, then what was put, each in the partition that it left and in the one that it entered.
  WITH ends AS (
    SELECT DISTINCT coalesce((put ->> 'place')::bigint, -1) AS place, given ->> 'kind' AS kind, given ->> 'id' AS id, given ->> 'partition' AS partition
    FROM jsonb_array_elements(puts || old) given
    LEFT JOIN jsonb_array_elements(puts) put ON put ->> 'kind' = given ->> 'kind' AND put ->> 'id' = given ->> 'id'
    WHERE given ->> 'kind' = ANY (moving)
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
  IF EXISTS (SELECT 1 FROM jsonb_each_text(versions) WHERE value::bigint % 1000 < jsonb_array_length(puts || old)) THEN
    DELETE FROM moves m USING jsonb_each_text(versions) v WHERE m.tenant = mesh_tenant(v.key) AND m.partition = v.key AND m.version <= v.value::bigint - 20000;
  END IF;
  RETURN versions;
EXCEPTION WHEN unique_violation THEN
  RAISE EXCEPTION 'an id is taken: %', SQLERRM USING ERRCODE = 'MM001';
END $sql$;
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
    SELECT token, score, sum(times) OVER (ORDER BY times, at) <= 2000 OR row_number() OVER (ORDER BY times, at) = 1 AS is_rare
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
-- What a search asks beside candidates: the methods of `core.candidate_ports.CandidateSource`, which defines the answers.

-- visible, with_status, readable, allowed (conditions), by_segment, words, model?, dimension?: counts of memories and words.
CREATE OR REPLACE FUNCTION mesh_statistics(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
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
    ELSE format('%%1$s.model = %s AND vector_dims(%%1$s.embedding) = %s', replace(quote_literal(payload ->> 'model'), '%', '%%'), (payload ->> 'dimension')::int) END
$sql$;

-- where, words: how many memories contain each word.
CREATE OR REPLACE FUNCTION mesh_count_words(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  answer json;
BEGIN
  PERFORM mesh_check(payload);
  EXECUTE format('SELECT json_object_agg(word, times) FROM (SELECT word, count(*) AS times FROM '
    '(SELECT DISTINCT t.partition, t.id, word FROM (SELECT t.* FROM %s) t, unnest(t.keywords) word WHERE word = ANY ($1)) each GROUP BY word) counted',
    mesh_source('memory', payload -> 'where')) INTO answer USING mesh_texts(payload -> 'words');
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
CREATE OR REPLACE FUNCTION mesh_around(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
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

-- A vector with whole numbers up to 127, as `index.space` stores it.
CREATE OR REPLACE FUNCTION mesh_rounded(given vector) RETURNS vector LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $sql$
  WITH items AS (SELECT item::float8, at FROM unnest(given::real[]) WITH ORDINALITY one(item, at)), peak AS (SELECT coalesce(nullif(max(abs(item)), 0), 1) AS size FROM items)
  SELECT array_agg(round(item * (127 / size)) ORDER BY at)::real[]::vector FROM items, peak
$sql$;

-- where, keys ([partition, session] each), words, model?, dimension?, vector?, rounded?: of each session the length, the counts of the words and
-- the best cosine. Vectors get the length one first, since pgvector computes in 32 bits. Those that are near the best are compared as
-- one byte per dimension, so that the cosine is the same as that of `index.space`.
CREATE OR REPLACE FUNCTION mesh_sessions(payload jsonb) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $sql$
DECLARE
  comparable text := mesh_comparable(payload);
  answer json;
BEGIN
  PERFORM mesh_check(payload);
  EXECUTE format(
    'WITH members AS MATERIALIZED (SELECT t.id, t.partition, t.session_id, t.keywords, t.embedding, t.model FROM %1$s AND (t.partition, t.session_id) IN '
    '  (SELECT one ->> 0, one ->> 1 FROM jsonb_array_elements($1) one)), '
    'times AS (SELECT partition, session_id, json_object_agg(word, times) AS counts FROM (SELECT partition, session_id, word, count(*) AS times '
    '  FROM members, unnest(keywords) word WHERE word = ANY ($2) GROUP BY 1, 2, 3) each GROUP BY 1, 2), '
    'vectors AS (SELECT t.partition, t.session_id, t.embedding FROM members t WHERE %2$s UNION ALL SELECT t.partition, t.session_id, p.embedding '
    '  FROM members t JOIN records p ON p.kind = ''passage'' AND p.ref = t.id AND p.partition = t.partition WHERE %3$s), '
    'compared AS MATERIALIZED (SELECT *, min(distance) OVER (PARTITION BY partition, session_id) AS least FROM (SELECT *, '
    '  coalesce(nullif(l2_normalize(embedding) <=> l2_normalize($3::vector), ''NaN''), 1) AS distance FROM vectors) each), '
    'cosines AS (SELECT partition, session_id, max(1 - coalesce(nullif(mesh_rounded(embedding) <=> $4::vector, ''NaN''), 1)) AS cosine '
    '  FROM compared WHERE distance <= least + 0.02 GROUP BY 1, 2) '
    'SELECT json_agg(json_build_array(m.partition, m.session_id, m.length, times.counts, cosines.cosine)) FROM '
    '  (SELECT partition, session_id, coalesce(sum(cardinality(keywords)), 0) AS length FROM members GROUP BY 1, 2) m '
    '  LEFT JOIN times USING (partition, session_id) LEFT JOIN cosines USING (partition, session_id)',
    mesh_source('memory', payload -> 'where'), format(comparable, 't'), format(comparable, 'p'))
    INTO answer USING payload -> 'keys', mesh_texts(payload -> 'words'), payload ->> 'vector', payload ->> 'rounded';
  RETURN answer;
END $sql$;
-- The functions for clients over HTTP (PostgREST, Supabase). JSON travels as text, in both directions: so numbers keep their digits,
-- and the limit of PostgREST for the number of rows does not cut an answer.

CREATE OR REPLACE FUNCTION mesh_read(function text, payload text) RETURNS text LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path FROM CURRENT AS $sql$
DECLARE
  given jsonb := payload::jsonb;
  answer text;
BEGIN
  CASE function
    WHEN 'mesh_find' THEN SELECT coalesce(json_agg(one), '[]') INTO answer FROM mesh_find(given) one;
    WHEN 'mesh_ids' THEN SELECT coalesce(json_agg(one), '[]') INTO answer FROM mesh_ids(given) one;
    WHEN 'mesh_nearest' THEN SELECT coalesce(json_agg(one), '[]') INTO answer FROM mesh_nearest(given) one;
    WHEN 'mesh_count' THEN answer := mesh_count(given);
    WHEN 'mesh_changes' THEN answer := mesh_changes(given);
    WHEN 'mesh_matching' THEN answer := mesh_matching(given);
    WHEN 'mesh_statistics' THEN answer := mesh_statistics(given);
    WHEN 'mesh_count_words' THEN answer := mesh_count_words(given);
    WHEN 'mesh_speakers' THEN answer := mesh_speakers(given);
    WHEN 'mesh_around' THEN answer := mesh_around(given);
    WHEN 'mesh_sessions' THEN answer := mesh_sessions(given);
    WHEN 'mesh_data_version' THEN answer := to_json(mesh_data_version(given));
    ELSE RAISE EXCEPTION 'unknown function %', function USING ERRCODE = 'MM004';
  END CASE;
  RETURN coalesce(answer, 'null');
EXCEPTION WHEN OTHERS THEN
  PERFORM mesh_raise(SQLSTATE, SQLERRM);
END $sql$;

CREATE OR REPLACE FUNCTION mesh_write(tenant text, payload text) RETURNS text LANGUAGE plpgsql SECURITY INVOKER SET search_path FROM CURRENT AS $sql$
BEGIN
  RETURN coalesce(mesh_apply(tenant, payload::jsonb)::text, '{}');
EXCEPTION WHEN OTHERS THEN
  PERFORM mesh_raise(SQLSTATE, SQLERRM);
END $sql$;

-- PostgREST answers an error whose SQLSTATE begins with PT with the status in it. 409: an id is taken. 412: what the caller read has
-- changed. 422: invalid input. 423: another change was in the way, try again. 426: the store has another schema.
CREATE OR REPLACE FUNCTION mesh_raise(state text, message text) RETURNS void LANGUAGE plpgsql AS $sql$
BEGIN
  RAISE EXCEPTION USING MESSAGE = message, ERRCODE = CASE
    WHEN state = 'MM001' THEN 'PT409' WHEN state = 'MM002' THEN 'PT412' WHEN state = 'MM003' THEN 'PT426'
    WHEN state = 'MM004' OR left(state, 2) IN ('22', '54') THEN 'PT422' WHEN state IN ('40001', '40P01', '55P03') THEN 'PT423'
    ELSE state END;
END $sql$;
ALTER TABLE mesh_roles ENABLE ROW LEVEL SECURITY;
ALTER TABLE mesh_migrations ENABLE ROW LEVEL SECURITY;
CREATE POLICY mesh_versions ON mesh_migrations FOR SELECT USING (true);
ALTER TABLE memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
CREATE POLICY mesh_rows ON memories USING ((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) WITH CHECK (((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) AND tenant = mesh_tenant(partition) AND ((SELECT mesh_identity()) = ARRAY[''] OR ((user_id IS NULL OR user_id = tenant) AND (kind <> 'head' OR id = partition))));
ALTER TABLE memory_links ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_links FORCE ROW LEVEL SECURITY;
CREATE POLICY mesh_rows ON memory_links USING ((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) WITH CHECK (((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) AND tenant = mesh_tenant(partition) AND ((SELECT mesh_identity()) = ARRAY[''] OR ((user_id IS NULL OR user_id = tenant) AND (kind <> 'head' OR id = partition))));
ALTER TABLE pending_conflicts ENABLE ROW LEVEL SECURITY;
ALTER TABLE pending_conflicts FORCE ROW LEVEL SECURITY;
CREATE POLICY mesh_rows ON pending_conflicts USING ((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) WITH CHECK (((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) AND tenant = mesh_tenant(partition) AND ((SELECT mesh_identity()) = ARRAY[''] OR ((user_id IS NULL OR user_id = tenant) AND (kind <> 'head' OR id = partition))));
ALTER TABLE yamo_blocks ENABLE ROW LEVEL SECURITY;
ALTER TABLE yamo_blocks FORCE ROW LEVEL SECURITY;
CREATE POLICY mesh_rows ON yamo_blocks USING ((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) WITH CHECK (((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) AND tenant = mesh_tenant(partition) AND ((SELECT mesh_identity()) = ARRAY[''] OR ((user_id IS NULL OR user_id = tenant) AND (kind <> 'head' OR id = partition))));
ALTER TABLE synthesized_skills ENABLE ROW LEVEL SECURITY;
ALTER TABLE synthesized_skills FORCE ROW LEVEL SECURITY;
CREATE POLICY mesh_rows ON synthesized_skills USING ((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) WITH CHECK (((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) AND tenant = mesh_tenant(partition) AND ((SELECT mesh_identity()) = ARRAY[''] OR ((user_id IS NULL OR user_id = tenant) AND (kind <> 'head' OR id = partition))));
ALTER TABLE records ENABLE ROW LEVEL SECURITY;
ALTER TABLE records FORCE ROW LEVEL SECURITY;
CREATE POLICY mesh_rows ON records USING ((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) WITH CHECK (((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) AND tenant = mesh_tenant(partition) AND ((SELECT mesh_identity()) = ARRAY[''] OR ((user_id IS NULL OR user_id = tenant) AND (kind <> 'head' OR id = partition))));
ALTER TABLE partitions ENABLE ROW LEVEL SECURITY;
ALTER TABLE partitions FORCE ROW LEVEL SECURITY;
CREATE POLICY mesh_rows ON partitions USING ((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) WITH CHECK (((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) AND tenant = mesh_tenant(partition) AND (true));
ALTER TABLE moves ENABLE ROW LEVEL SECURITY;
ALTER TABLE moves FORCE ROW LEVEL SECURITY;
CREATE POLICY mesh_rows ON moves USING ((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) WITH CHECK (((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) AND tenant = mesh_tenant(partition) AND (true));
ALTER TABLE keyword_segments ENABLE ROW LEVEL SECURITY;
ALTER TABLE keyword_segments FORCE ROW LEVEL SECURITY;
CREATE POLICY mesh_rows ON keyword_segments USING ((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) WITH CHECK (((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) AND tenant = mesh_tenant(partition) AND (true));
ALTER TABLE keyword_counts ENABLE ROW LEVEL SECURITY;
ALTER TABLE keyword_counts FORCE ROW LEVEL SECURITY;
CREATE POLICY mesh_rows ON keyword_counts USING ((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) WITH CHECK (((partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT mesh_identity())::text[])))) AND tenant = mesh_tenant(partition) AND (true));
INSERT INTO mesh_migrations (version) VALUES (4);
INSERT INTO mesh_roles (role, scope) VALUES (session_user, 'server') ON CONFLICT DO NOTHING;
