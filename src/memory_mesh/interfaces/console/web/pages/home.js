// The first view: counts, what needs a review, and the newest memories.
import { read } from "../api.js";
import { Card, Empty, Loaded, LongList, Dated, MemoryLink, Status, Tag, Title, address, count, html, plural, useLoad, visible } from "../ui.js";
import { NoMemories, Whose } from "../users.js";

const REACHES_REVIEW = ["user", "server"];
const PAGE = 30;

export default function Home({ session }) {
  const stats = useLoad(() => read("stats"));
  const reviews = REACHES_REVIEW.includes(session.extent);
  return html`<${Title} note=${html`<${Whose} />`}>What the memory knows</${Title}>
    <${Loaded} of=${stats}>${(data) => data.total_memories + data.total_skills > 0 && html`<div class="cards">
      <${Count} number=${data.total_memories} label=${data.total_memories === 1 ? "memory" : "memories"} />
      ${Object.entries(data.by_status || {}).map(([status, number]) => html`<${Count} number=${number} label=${status}
        href=${status === "quarantined" && reviews ? "#/review" : address("/search", { status })} />`)}
      <${Count} number=${data.total_skills} label=${data.total_skills === 1 ? "skill" : "skills"} href="#/skills" />
    </div>`}</${Loaded}>
    <div class="columns">
      <${Card} title="Newest memories" note="the last stored first"><${Newest} /></${Card}>
      ${reviews && html`<${Card} title="Waiting for a review" class="first-on-phone"><${Waiting} /></${Card}>`}
    </div>`;
}

const Count = ({ number, label, href }) => html`<div class="card"><div class="big-number">${count(number)}</div>${href ? html`<a href=${href}>${label}</a>` : html`<span class="faint">${label}</span>`}</div>`;

function Newest() {
  const load = async (after) => {
    const { results, next } = await read("list", { limit: PAGE, after });
    return { items: results, next };
  };
  return html`<${LongList} label="Newest memories" load=${load} height=${70} empty=${html`<${NoMemories}>No memory is active.</${NoMemories}>`} row=${(memory) => html`
    <${MemoryLink} id=${memory.id} title=${memory.content} />
    <div class="meta one-line"><${Dated} memory=${memory} /> <bdi>${visible(memory.category || memory.memory_type)}</bdi> ${memory.agent_id && html`<bdi>${visible(memory.agent_id)}</bdi>`}
      ${memory.pinned && html`<${Tag} kind="info">pinned</${Tag}>`} ${memory.tags.slice(0, 4).map((tag) => html`<${Tag}>${tag}</${Tag}> `)}</div>`} />`;
}

function Waiting() {
  const load = useLoad(async () => {
    const [quarantined, conflicts] = await Promise.all([read("quarantined", { limit: 6 }), read("conflicts", { status: "pending" })]);
    return { memories: quarantined.results.slice(0, 5), more: quarantined.results.length > 5, conflicts: conflicts.count };
  });
  return html`<${Loaded} of=${load}>${(data) => html`
    ${!data.memories.length && !data.conflicts && html`<${Empty}>Nothing waits for a review.</${Empty}>`}
    <ul class="items">${data.memories.map((memory) => html`<li key=${memory.id}><${MemoryLink} id=${memory.id} title=${memory.content} />
      <div class="meta"><${Status} of=${memory.status} /><${Dated} memory=${memory} /></div></li>`)}</ul>
    ${(data.memories.length > 0 || data.conflicts > 0) && html`<p class="after"><a class="button primary" href="#/review">Review${data.conflicts ? ` (${plural(data.conflicts, "conflict")})` : ""}</a></p>`}`}</${Loaded}>`;
}
