/** Use every kind of operation through openapi-fetch with the types that openapi-typescript
 * generates, and print what came back as JSON. Arguments: the URL of the server, and a token. */

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

type Schemas = components["schemas"];
type Memory = Schemas["MemoryRecord"];
type Problem = Schemas["Problem"];

/** Return the answer of an operation, or throw its error. */
async function answered<Answer>(
  call: Promise<{ data?: Answer; error?: Problem }>,
): Promise<Answer> {
  const { data, error } = await call;
  if (data === undefined) throw new Error(`${error?.title}: ${error?.detail}`);
  return data;
}

/** Return the kind of an error and its status. */
async function refused(call: Promise<{ data?: unknown; error?: Problem }>) {
  const { error } = await call;
  if (error === undefined) throw new Error("there was no error");
  return [error.type.split(":").pop(), error.status, error.what !== undefined];
}

/** Return the memory that was stored; of messages there would be a list. */
async function one(
  call: Promise<{ data?: Memory | { results: Memory[] }; error?: Problem }>,
): Promise<Memory> {
  const answer = await answered(call);
  if ("results" in answer) throw new Error("there are several");
  return answer;
}

const listed = (answer: Schemas["ListAnswer"]): Memory[] => answer.results;

const contents = (memories: { content: string }[]): string[] =>
  memories.map((memory) => memory.content).sort();

/** Return what each operation answered, under its name. */
async function use(baseUrl: string, token: string) {
  const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
  const key = await one(
    client.POST("/v1/store", {
      params: { header: { "Idempotency-Key": "once" } },
      body: {
        content: "The deploy key rotates on Mondays.",
        tags: ["ops"],
        metadata: { source: "runbook", depth: 2 },
      },
    }),
  );
  const tea = await one(
    client.POST("/v1/store", { body: { content: "Ana drinks green tea.", type: "global" } }),
  );
  const found = await answered(
    client.POST("/v1/search", { body: { query: "when does the deploy key rotate?" } }),
  );
  const best = found.results[0];
  const filtered = await answered(
    client.POST("/v1/search", {
      body: {
        query: "deploy key",
        filter: "tags = 'ops'",
        mode: "recall",
        status: ["active"],
        limit: 5,
      },
    }),
  );
  const queried = await answered(
    client.GET("/v1/search", { params: { query: { query: "green tea", limit: 1 } } }),
  );
  const stored = await answered(client.POST("/v1/get", { body: { id: key.id } }));
  const changed = await answered(
    client.POST("/v1/update", {
      body: {
        id: key.id,
        content: "The deploy key rotates on Fridays.",
        metadata: { source: "chat" },
        why: "the team moved it",
      },
    }),
  );
  const changes = await answered(client.POST("/v1/history", { body: { id: key.id } }));
  const pinned = await answered(client.POST("/v1/pin", { body: { id: key.id } }));
  const page = await answered(client.GET("/v1/list", { params: { query: { limit: 1 } } }));
  const rest = await answered(
    client.GET("/v1/list", { params: { query: { limit: 5, after: page.next } } }),
  );
  const both = await answered(
    client.POST("/v1/store-many", {
      body: { items: [{ content: "One of many." }, { content: "Two." }] },
    }),
  );
  const events = await answered(
    client.POST("/v1/ingest", {
      body: '"A line of a stream."\n{"content": "Another line.", "key": "lines/2"}\n',
      bodySerializer: (lines) => lines,
      headers: { "Content-Type": "application/x-ndjson" },
      parseAs: "text",
    }),
  );
  const claimed = await answered(
    client.POST("/v1/graph/store", {
      body: {
        text: "The office is in Berlin.",
        claim: { subject: "office", predicate: "located_in", value: "Berlin" },
      },
    }),
  );
  const claim = await answered(
    client.POST("/v1/explain-memory", { body: { memory_id: claimed.id } }),
  );
  await answered(
    client.POST("/v1/lane/store", {
      body: { content: "Use pnpm, not npm.", memory_type: "correction" },
    }),
  );
  const hints = await answered(client.POST("/v1/lane/find", { body: { query: "pnpm or npm?" } }));
  const judged = await answered(
    client.POST("/v1/lane/judge", {
      body: { messages: [{ role: "user", content: "What time is it?" }] },
    }),
  );
  const prompt = await answered(client.POST("/v1/context", { body: { query: "deploy key" } }));
  const why = await answered(client.POST("/v1/explain", { body: { query: "deploy key" } }));
  const verified = await answered(client.POST("/v1/audit/verify", { body: {} }));
  const counts = await answered(client.POST("/v1/stats", { body: {} }));
  const erased = await answered(client.POST("/v1/forget", { body: { id: tea.id, verify: true } }));
  await answered(client.POST("/v1/delete", { body: { id: both.results[0].id } }));
  const left = await answered(client.GET("/v1/list"));
  const text = await answered(client.GET("/metrics", { parseAs: "text" }));
  return {
    store: [key.content, key.tags, key.metadata.source, key.metadata.depth, key.revision],
    search: [best.id === key.id, best.content, best.relevant, best.score > 0 && best.score <= 1],
    filtered: contents(filtered.results),
    queried: contents(queried.results),
    get: [stored.id === key.id, stored.status, stored.valid_until === undefined],
    update: [changed.content, changed.metadata.source, changed.revision > key.revision],
    history: changes.results.map((change) => [change.action, change.why ?? null]),
    pin: pinned.pinned,
    pages: [
      listed(page).length,
      page.next !== undefined,
      listed(rest).length,
      rest.next !== undefined,
    ],
    store_many: contents(both.results),
    ingest: events.split("\n").filter((line) => line.startsWith("event:")),
    graph_store: [claimed.is_new, claimed.memory.content, claimed.conflicts],
    claim: [claim.claim?.value ?? null, claim.trust.value > 0],
    lane: hints.results[0].content,
    judge: [judged.kept.length, judged.not_kept[0].text],
    context: prompt.text.includes("Fridays"),
    explain: "keywords" in why.answers[0].channels,
    verify: [verified.ok, verified.results.every((chain) => chain.ok)],
    stats: [counts.total_memories, counts.by_status.active],
    forget: [erased.memories.length, erased.memories[0] === tea.id, erased.check?.rows_left],
    left: contents(listed(left)),
    missing: await refused(client.POST("/v1/get", { body: { id: "mem_missing" } })),
    blank: await refused(client.POST("/v1/search", { body: { query: " " } })),
    filter: await refused(
      client.POST("/v1/search", { body: { query: "tea", filter: "nothing = 1" } }),
    ),
    metrics: text.includes("# HELP"),
  };
}

async function main(baseUrl: string, token: string): Promise<void> {
  const done = await use(baseUrl, token);
  const client = createClient<paths>({ baseUrl, headers: { Authorization: "Bearer unknown" } });
  const refusal = await refused(client.POST("/v1/stats", { body: {} }));
  const { status } = await answered(client.GET("/health"));
  console.log(JSON.stringify({ ...done, "unknown token": refusal, health: status }));
}

await main(process.argv[2], process.argv[3]);
