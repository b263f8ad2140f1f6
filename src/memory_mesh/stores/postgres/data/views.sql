-- Tables of neolata that are computed from the others. They show what the reader may see of those.

CREATE OR REPLACE VIEW memory_archive WITH (security_invoker) AS SELECT * FROM memories WHERE status = 'archived';

-- As `core.graph.episodes` splits them by default: a session, and within it wherever nothing was stored for half an hour.
CREATE OR REPLACE VIEW episodes WITH (security_invoker) AS
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
CREATE OR REPLACE VIEW memory_clusters WITH (security_invoker) AS
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
