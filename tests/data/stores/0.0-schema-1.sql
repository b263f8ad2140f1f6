BEGIN TRANSACTION;
CREATE TABLE memories (
  id TEXT PRIMARY KEY,
  content TEXT NOT NULL,
  metadata TEXT,
  collection TEXT DEFAULT 'memory-lane',
  tags TEXT,
  embedding BLOB,
  decay_factor REAL DEFAULT 1.0,
  valid_from TEXT,
  valid_until TEXT,
  superseded_by TEXT,
  auto_tags TEXT,
  keywords TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
, partition TEXT, revision INTEGER, number INTEGER, user_id TEXT, agent_id TEXT, session_id TEXT, project TEXT, memory_type TEXT, reach TEXT, category TEXT, speaker TEXT, turn INTEGER, importance REAL, trust REAL, confidence REAL, event_time TEXT, expires_at TEXT, last_observed TEXT, status TEXT, pinned INTEGER, times_observed INTEGER, supersedes TEXT, sources TEXT, heritage_chain TEXT, lesson_pattern_id TEXT, source_skill_id TEXT, fingerprint TEXT, salt TEXT, model TEXT, extra TEXT);
INSERT INTO "memories" VALUES('mem_1767225600000_2265b1','The deploy key rotates on Tuesdays.','{"source":"a note","tags":["ops"]}','memory-lane','["ops"]',NULL,1.0,NULL,NULL,NULL,NULL,'["deploy","key","rotat","tuesday"]','2026-01-01T00:00:00.000Z','2026-01-02T00:00:00.000Z','["ana", null]',2,1,'ana','planner',NULL,NULL,'global',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-01-01T00:00:00.000Z','active',0,1,'[]','[]',NULL,NULL,NULL,'632eef64bcf1c9c0d985f6d55fed146da3bba56cc2879b9e5d07772b93e20e42','1027c4d1c386bbc4cd613e30d8f16adf',NULL,NULL);
INSERT INTO "memories" VALUES('mem_1767312000000_45d463','Tea is served at four.','{"memory_type":"agent"}','memory-lane','[]',NULL,1.0,NULL,NULL,NULL,NULL,'["tea","serv","four"]','2026-01-02T00:00:00.000Z','2026-01-02T00:00:00.000Z','["ana", null]',2,2,'ana','planner',NULL,NULL,'global',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-01-02T00:00:00.000Z','active',1,1,'[]','[]',NULL,NULL,NULL,'4da4c5e6872652f3ad7f0a51bd459b9d632dae44a6de7d09eec23d58cf4b875f','c2ce6f447ed4d57b1e2feb89414c343c',NULL,NULL);
INSERT INTO "memories" VALUES('mem_1767312000000_f4bea9','The lantern needs oil and a wick.','{}','memory-lane','[]',NULL,1.0,NULL,NULL,NULL,NULL,'["lantern","need","oil","wick"]','2026-01-02T00:00:00.000Z','2026-01-02T00:00:00.000Z','[null, null]',1,1,NULL,'writer',NULL,NULL,'global',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-01-02T00:00:00.000Z','active',0,1,'[]','[]',NULL,NULL,NULL,'8545e99b9b70317d924b393b429381c8a4d9cced06450df42e615f955391f97c','177219d30e7a269fd95bafc8f2a4d27b',NULL,NULL);
CREATE TABLE mesh_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "mesh_meta" VALUES('schema','1');
CREATE TABLE partitions (
      partition TEXT PRIMARY KEY, version INTEGER NOT NULL, documents INTEGER NOT NULL, length INTEGER NOT NULL
      ) WITHOUT ROWID;
INSERT INTO "partitions" VALUES('["ana", null]',6,2,7);
INSERT INTO "partitions" VALUES('[null, null]',1,1,4);
CREATE TABLE postings (
      token TEXT NOT NULL, partition TEXT NOT NULL, id TEXT NOT NULL, times INTEGER NOT NULL, length INTEGER NOT NULL,
      PRIMARY KEY (token, partition, id)) WITHOUT ROWID;
INSERT INTO "postings" VALUES('deploy','["ana", null]','mem_1767225600000_2265b1',1,4);
INSERT INTO "postings" VALUES('four','["ana", null]','mem_1767312000000_45d463',1,3);
INSERT INTO "postings" VALUES('key','["ana", null]','mem_1767225600000_2265b1',1,4);
INSERT INTO "postings" VALUES('lantern','[null, null]','mem_1767312000000_f4bea9',1,4);
INSERT INTO "postings" VALUES('need','[null, null]','mem_1767312000000_f4bea9',1,4);
INSERT INTO "postings" VALUES('oil','[null, null]','mem_1767312000000_f4bea9',1,4);
INSERT INTO "postings" VALUES('rotat','["ana", null]','mem_1767225600000_2265b1',1,4);
INSERT INTO "postings" VALUES('serv','["ana", null]','mem_1767312000000_45d463',1,3);
INSERT INTO "postings" VALUES('tea','["ana", null]','mem_1767312000000_45d463',1,3);
INSERT INTO "postings" VALUES('tuesday','["ana", null]','mem_1767225600000_2265b1',1,4);
INSERT INTO "postings" VALUES('wick','[null, null]','mem_1767312000000_f4bea9',1,4);
CREATE TABLE records (
      kind TEXT NOT NULL, id TEXT NOT NULL, embedding BLOB, model TEXT, extra TEXT, partition TEXT, revision INTEGER, number INTEGER, created_at TEXT, user_id TEXT, agent_id TEXT, session_id TEXT, memory_type TEXT, reach TEXT, ref TEXT, target TEXT, PRIMARY KEY (kind, id)) WITHOUT ROWID;
INSERT INTO "records" VALUES('change','mem_1767225600000_2265b1#2',NULL,NULL,'{"action": "update", "why": "it moved", "before": {"content": "The deploy key rotates on Mondays."}}','["ana", null]',1,2,'2026-01-02T00:00:00.000Z','ana','planner',NULL,NULL,NULL,'mem_1767225600000_2265b1',NULL);
INSERT INTO "records" VALUES('change','mem_1767312000000_45d463#2',NULL,NULL,'{"action": "pin", "before": {"pinned": false}}','["ana", null]',1,2,'2026-01-02T00:00:00.000Z','ana','planner',NULL,NULL,NULL,'mem_1767312000000_45d463',NULL);
INSERT INTO "records" VALUES('head','["chain", "ana", "planner"]',NULL,NULL,'{"block_hash": "173cb336a6e9153f4d20aa9040daf119ca6f73d07381bab89b04f702ffaf965c"}','["chain", "ana", "planner"]',6,6,'2026-01-01T00:00:00.000Z',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "records" VALUES('head','["chain", null, "writer"]',NULL,NULL,'{"block_hash": "6a01a182a000022e3b35f93f281786e7acbe4e351cb8234f9823a5cffb73237a"}','["chain", null, "writer"]',1,1,'2026-01-02T00:00:00.000Z',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "records" VALUES('receipt','receipt_90db454f41f1f916e70665a9626ba0d22598f237a04304603bc7fee078eaadb5',NULL,NULL,'{"request": "e3c7a06290e69091c75fbdf391ffa05447c6816520197516b4cf9b8a4a97e244"}','["ana", null]',1,0,'2026-01-01T00:00:00.000Z',NULL,NULL,NULL,NULL,NULL,'mem_1767225600000_2265b1',NULL);
CREATE TABLE yamo_blocks (
      id TEXT PRIMARY KEY, agent_id TEXT, operation_type TEXT NOT NULL, yamo_text TEXT NOT NULL, timestamp TEXT NOT NULL,
      block_hash TEXT NOT NULL, prev_hash TEXT, metadata TEXT, partition TEXT, revision INTEGER, number INTEGER, user_id TEXT, session_id TEXT, ref TEXT, chain TEXT);
INSERT INTO "yamo_blocks" VALUES('yamo_retain_1767225600000_b41d0a','planner','retain','agent: MemoryMesh_planner;
intent: store_memory_for_future_retrieval;
context:
  memory_id;mem_1767225600000_2265b1;
  memory_type;global;
  timestamp;2026-01-01T00:00:00.000Z;
  content_length;34;
constraints:
  hypothesis;none;
priority: medium;
output:
  memory_stored;mem_1767225600000_2265b1;
  content_preview;The deploy key rotates on Mondays.;
meta:
  rationale;Memory persisted for semantic search and retrieval;
  observation;Content vectorized and stored in LanceDB;
  confidence;1.0;
  content_hash;063f2939505b86a992911fa935f40d5bd53e1baa299d009149d25d74ae87a583;
log: memory_retained;timestamp;2026-01-01T00:00:00.000Z;id;mem_1767225600000_2265b1;type;global;
handoff: End;
','2026-01-01T00:00:00.000Z','685935eb06978675a55da10d78da2698f8ea4fa5f31d2cda54004009be58fd26',NULL,'{"action":"add","tags":["ops"]}','["chain", "ana", "planner"]',1,1,'ana',NULL,'mem_1767225600000_2265b1','["chain", "ana", "planner"]');
INSERT INTO "yamo_blocks" VALUES('yamo_retain_1767312000000_d78bbc','planner','retain','agent: MemoryMesh_planner;
intent: store_memory_for_future_retrieval;
context:
  memory_id;mem_1767312000000_45d463;
  memory_type;global;
  timestamp;2026-01-02T00:00:00.000Z;
  content_length;22;
constraints:
  hypothesis;none;
priority: medium;
output:
  memory_stored;mem_1767312000000_45d463;
  content_preview;Tea is served at four.;
meta:
  rationale;Memory persisted for semantic search and retrieval;
  observation;Content vectorized and stored in LanceDB;
  confidence;1.0;
  content_hash;7503c00f5f74696b6b6b8570bd9070efa29f05ed5ac9dbf48a65b16e8ea42c80;
  prev_block;685935eb06978675a55da10d78da2698f8ea4fa5f31d2cda54004009be58fd26;
log: memory_retained;timestamp;2026-01-02T00:00:00.000Z;id;mem_1767312000000_45d463;type;global;
handoff: End;
','2026-01-02T00:00:00.000Z','6ec72496ba75a5276159862ea1ab92a0932b09eff52b52dc9b5c3b590ccb5e34','685935eb06978675a55da10d78da2698f8ea4fa5f31d2cda54004009be58fd26','{"action":"add"}','["chain", "ana", "planner"]',1,2,'ana',NULL,'mem_1767312000000_45d463','["chain", "ana", "planner"]');
INSERT INTO "yamo_blocks" VALUES('yamo_retain_1767312000000_694315','planner','retain','agent: MemoryMesh_planner;
intent: store_memory_for_future_retrieval;
context:
  memory_id;mem_1767225600000_2265b1;
  memory_type;global;
  timestamp;2026-01-02T00:00:00.000Z;
  content_length;35;
  action;update;
  revision;2;
constraints:
  hypothesis;none;
priority: medium;
output:
  memory_stored;mem_1767225600000_2265b1;
  content_preview;The deploy key rotates on Tuesdays.;
meta:
  rationale;Memory persisted for semantic search and retrieval;
  observation;Content vectorized and stored in LanceDB;
  confidence;1.0;
  content_hash;463b8a9b1317c04094022e71aa944f79c7f6a530b8f63edf915153aff4155ad6;
  prev_block;6ec72496ba75a5276159862ea1ab92a0932b09eff52b52dc9b5c3b590ccb5e34;
log: memory_retained;timestamp;2026-01-02T00:00:00.000Z;id;mem_1767225600000_2265b1;type;global;
handoff: End;
','2026-01-02T00:00:00.000Z','6e037deb17fee97affac73b8b2babd917f1d149f699768b370be076699d475c1','6ec72496ba75a5276159862ea1ab92a0932b09eff52b52dc9b5c3b590ccb5e34','{"action":"update","tags":["ops"]}','["chain", "ana", "planner"]',1,3,'ana',NULL,'mem_1767225600000_2265b1','["chain", "ana", "planner"]');
INSERT INTO "yamo_blocks" VALUES('yamo_retain_1767312000000_fafa6e','planner','retain','agent: MemoryMesh_planner;
intent: store_memory_for_future_retrieval;
context:
  memory_id;mem_1767312000000_45d463;
  memory_type;global;
  timestamp;2026-01-02T00:00:00.000Z;
  content_length;22;
  action;pin;
  revision;2;
constraints:
  hypothesis;none;
priority: medium;
output:
  memory_stored;mem_1767312000000_45d463;
  content_preview;Tea is served at four.;
meta:
  rationale;Memory persisted for semantic search and retrieval;
  observation;Content vectorized and stored in LanceDB;
  confidence;1.0;
  content_hash;7503c00f5f74696b6b6b8570bd9070efa29f05ed5ac9dbf48a65b16e8ea42c80;
  prev_block;6e037deb17fee97affac73b8b2babd917f1d149f699768b370be076699d475c1;
log: memory_retained;timestamp;2026-01-02T00:00:00.000Z;id;mem_1767312000000_45d463;type;global;
handoff: End;
','2026-01-02T00:00:00.000Z','2ebddeeebbe23df0cd0f19d6361e6fa8d298a159f1cb83229ecc84f034ed4000','6e037deb17fee97affac73b8b2babd917f1d149f699768b370be076699d475c1','{"action":"pin"}','["chain", "ana", "planner"]',1,4,'ana',NULL,'mem_1767312000000_45d463','["chain", "ana", "planner"]');
INSERT INTO "yamo_blocks" VALUES('yamo_retain_1767312000000_1e6920','planner','retain','erased','2026-01-02T00:00:00.000Z','2dae2c5a47f01a598844e2b4c42587f3eaaaf6b86f70f07e7bb8dd57bb74ffa5','2ebddeeebbe23df0cd0f19d6361e6fa8d298a159f1cb83229ecc84f034ed4000',NULL,'["chain", "ana", "planner"]',2,5,'ana',NULL,'mem_1767312000000_8cb1c7','["chain", "ana", "planner"]');
INSERT INTO "yamo_blocks" VALUES('yamo_retain_1767312000000_b02079','planner','retain','agent: MemoryMesh_planner;
intent: erase_memory_for_good;
context:
  memory_id;mem_1767312000000_8cb1c7;
  action;erase;
  timestamp;2026-01-02T00:00:00.000Z;
priority: medium;
output:
  memory_erased;mem_1767312000000_8cb1c7;
  block_erased;yamo_retain_1767312000000_1e6920 2dae2c5a47f01a598844e2b4c42587f3eaaaf6b86f70f07e7bb8dd57bb74ffa5;
meta:
  rationale;Memory erased on request;
  confidence;1.0;
  prev_block;2dae2c5a47f01a598844e2b4c42587f3eaaaf6b86f70f07e7bb8dd57bb74ffa5;
log: memory_erased;timestamp;2026-01-02T00:00:00.000Z;id;mem_1767312000000_8cb1c7;
handoff: End;
','2026-01-02T00:00:00.000Z','173cb336a6e9153f4d20aa9040daf119ca6f73d07381bab89b04f702ffaf965c','2dae2c5a47f01a598844e2b4c42587f3eaaaf6b86f70f07e7bb8dd57bb74ffa5','{"action":"erase"}','["chain", "ana", "planner"]',1,6,'ana',NULL,'mem_1767312000000_8cb1c7','["chain", "ana", "planner"]');
INSERT INTO "yamo_blocks" VALUES('yamo_retain_1767312000000_d1b364','writer','retain','agent: MemoryMesh_writer;
intent: store_memory_for_future_retrieval;
context:
  memory_id;mem_1767312000000_f4bea9;
  memory_type;global;
  timestamp;2026-01-02T00:00:00.000Z;
  content_length;33;
constraints:
  hypothesis;none;
priority: medium;
output:
  memory_stored;mem_1767312000000_f4bea9;
  content_preview;The lantern needs oil and a wick.;
meta:
  rationale;Memory persisted for semantic search and retrieval;
  observation;Content vectorized and stored in LanceDB;
  confidence;1.0;
  content_hash;28aba2aef14d95b581f4b281ecccf23c42bda565ddbb060f831ec484f7e2d514;
log: memory_retained;timestamp;2026-01-02T00:00:00.000Z;id;mem_1767312000000_f4bea9;type;global;
handoff: End;
','2026-01-02T00:00:00.000Z','6a01a182a000022e3b35f93f281786e7acbe4e351cb8234f9823a5cffb73237a',NULL,'{"action":"add"}','["chain", null, "writer"]',1,1,NULL,NULL,'mem_1767312000000_f4bea9','["chain", null, "writer"]');
CREATE INDEX memories_by_status ON memories (user_id, status);
CREATE INDEX memories_by_age ON memories (partition, created_at, number, id);
CREATE INDEX memories_by_fingerprint ON memories (fingerprint) WHERE fingerprint IS NOT NULL;
CREATE INDEX memories_by_sources ON memories (user_id, sources);
CREATE INDEX memories_to_take_up ON memories (id) WHERE partition IS NULL;
CREATE INDEX blocks_by_ref ON yamo_blocks (ref) WHERE ref IS NOT NULL;
CREATE UNIQUE INDEX blocks_by_number ON yamo_blocks (chain, number);
CREATE INDEX records_by_ref ON records (kind, ref) WHERE ref IS NOT NULL;
CREATE INDEX records_by_target ON records (kind, target) WHERE target IS NOT NULL;
COMMIT;
