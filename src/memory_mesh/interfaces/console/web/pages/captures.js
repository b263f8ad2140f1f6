// Captures: what was kept of the sessions of agents, and a trial that shows what would be kept, what not, and why.
import { read, write } from "../api.js";
import { Button, Card, Dated, Empty, Field, LongList, MemoryLink, ProblemBox, Status, Tag, Text, Title, html, percent, plural, useState } from "../ui.js";
import { cut } from "./parts.js";

const EXAMPLE = `user: Hi! Can you set the project up?
assistant: Sure. I'll install the dependencies with npm install and run the tests.
user: No, use pnpm instead of npm here. The lockfile gets wrecked otherwise.
user: We decided to go with Postgres for the ledger, MySQL is out.
user: use port 9000 for now, 8000 is taken`;

export default function Captures() {
  const load = async (after) => {
    const found = await read("list", { filter: "metadata.source_chunk IS NOT NULL", status: ["active", "superseded", "disputed", "quarantined"], limit: 50, after });
    return { items: found.results, next: found.next };
  };
  return html`<${Title} note="Capture reads the transcripts of sessions and keeps the few statements that matter later.">Captures</${Title}>
    <${Card} title="Kept">
      <${LongList} label="Kept statements" height=${104} load=${load} row=${(one) => html`<${Kept} one=${one} />`}
        empty=${html`Nothing was captured yet. Run <code>memory-mesh init</code> in a project, and its coding agent fills the memory by itself.`} />
    </${Card}>
    <${Trial} />`;
}

const Kept = ({ one }) => html`<div class="kept">
  <${MemoryLink} data-item id=${one.id} title=${one.content} />
  <p class="meta"><${Tag} kind="info">${one.category}</${Tag}>${one.status !== "active" && html`<${Status} of=${one.status} />`}<span>sure to ${percent(one.confidence)}</span>
    <span class="said">said by ${one.metadata.provenance?.source === "user_explicit" ? "the user" : "the agent"}</span>${one.session_id && html`<span class="clamp">session <bdi>${cut(one.session_id, 30)}</bdi></span>`}<${Dated} memory=${one} /></p>
  <p class="one-line faint" title="The part of the transcript that it was learnt from">from: ${cut(String(one.metadata.source_chunk), 200)}</p></div>`;

/** What is not kept is stored nowhere, so a transcript is judged again here. */
function Trial() {
  const [text, setText] = useState(EXAMPLE);
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState(null);
  const run = async () => {
    setProblem(null);
    setFound(await write("lane judge", { messages: messages(text) }));
  };
  return html`<${Card} title="Not kept, and why">
    <p>What is not kept is stored nowhere. Paste a part of a transcript to see how it would be judged; nothing of it is stored.</p>
    <${Field} label="Transcript: begin each message with user: or assistant:"><textarea rows="7" value=${text} onInput=${(event) => setText(event.target.value)}></textarea></${Field}>
    <div class="actions"><${Button} kind="primary" onClick=${run} onProblem=${setProblem} disabled=${!text.trim()}>Judge it</${Button}></div>
    ${problem && html`<${ProblemBox} problem=${problem} />`}
    <div aria-live="polite">${found && html`<${Judged} found=${found} />`}</div>
  </${Card}>`;
}

const Judged = ({ found }) => html`<h3>${plural(found.kept.length, "statement")} would be kept</h3>
  ${found.kept.length ? html`<ul class="items">${found.kept.map((one) => html`<li><${Tag} kind="good">${one.memory_type}</${Tag}> <${Text} limit=${500}>${one.content}</${Text}></li>`)}</ul>` : html`<${Empty}>Nothing in it matters later.</${Empty}>`}
  <h3>${plural(found.not_kept.length, "sentence")} would not</h3>
  <ul class="items">${found.not_kept.map((one) => html`<li><${Tag}>${one.why}</${Tag}> <${Text} limit=${300}>${one.text}</${Text}></li>`)}</ul>`;

/** The messages of a pasted transcript. A line without a role continues the message before it. */
function messages(text) {
  const list = [];
  for (const line of text.split("\n")) {
    const [, role, content] = /^\s*(user|assistant|tool)\s*:\s*(.*)$/i.exec(line) || [];
    if (role) list.push({ role: role.toLowerCase(), content });
    else if (list.length) list.at(-1).content += `\n${line}`;
    else if (line.trim()) list.push({ role: "user", content: line });
  }
  return list;
}
