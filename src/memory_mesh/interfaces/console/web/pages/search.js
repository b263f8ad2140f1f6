// Search, with an explanation of every score; without a query it lists what the filters select.
import { read } from "../api.js";
import { Button, Card, Dated, Field, Loaded, LongList, MemoryLink, Status, Tag, Text, Title, count, day, html, navigate, percent, plural, useEffect, useLoad, useMemo, useState, visible, address } from "../ui.js";
import { NoMemories } from "../users.js";

const STATUSES = ["active", "superseded", "disputed", "quarantined", "archived"];
const KINDS = ["global", "agent", "session", "lesson", "reflection"];
const RANKERS = [["", "As configured"], ["learnt", "Learnt"], ["rrf", "Rank fusion"]];
const FILTERS = ["status", "kind", "category", "tag", "project", "since", "until", "as_of", "known_at"];
const LEFT_OUT = {
  status: "of another status", min_score: "probably irrelevant", limit: "beyond the number shown", filter: "excluded by the filter", expired: "expired",
  copies: "with the same text", valid: "not valid then", gone: "erased meanwhile",
};

export default function Search({ route }) {
  const args = Object.fromEntries(route.args);
  const change = (changes) => navigate("/search", { ...args, ...changes }, { replace: true });
  return html`<${Title}>${args.query ? "Search" : "Browse"}</${Title}>
    <${Controls} args=${args} change=${change} />
    ${args.query ? html`<${Results} args=${args} change=${change} />` : html`<${Browse} args=${args} />`}`;
}

function Controls({ args, change }) {
  const used = FILTERS.filter((name) => args[name]);
  const field = (name, label, type = "text") => html`<${Field} label=${label}><input type=${type} value=${args[name] || ""} onChange=${(event) => change({ [name]: event.target.value })} /></${Field}>`;
  const select = (name, label, values, first) => html`<${Field} label=${label}><select value=${args[name] || ""} onChange=${(event) => change({ [name]: event.target.value })}>
    <option value="">${first}</option>${values.map((value) => html`<option value=${value}>${value}</option>`)}</select></${Field}>`;
  return html`<${Card}>
    <div class="row spread">
      ${args.query ? html`<label class="inline faint">Ranker <select value=${args.ranker || ""} onChange=${(event) => change({ ranker: event.target.value })}>${RANKERS.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>`
      : html`<span class="faint">Type a question above, or choose filters.</span>`}
      ${used.length > 0 && html`<button type="button" class="button small quiet" onClick=${() => change(Object.fromEntries(FILTERS.map((name) => [name, ""])))}>Remove ${plural(used.length, "filter")}</button>`}
    </div>
    <details open=${used.length > 0}><summary class="faint">Filters</summary><div class="filters">
      ${select("status", "Status", [...STATUSES, "any"], "active (default)")}${select("kind", "Kind", KINDS, "any")}
      ${field("category", "Category")}${field("tag", "Tag")}${field("project", "Project")}
      ${field("since", "Stored since", "date")}${field("until", "Stored until", "date")}
      ${args.query && html`${field("as_of", "Valid on", "date")}${field("known_at", "As known on", "date")}`}
    </div></details>
  </${Card}>`;
}

/** The filter expression and the statuses of the arguments of the page. */
function selection({ status, kind, category, tag, project, since, until }) {
  const equal = { memory_type: kind, category, tags: tag, project };
  const parts = Object.entries(equal).filter(([, value]) => value).map(([name, value]) => `${name} = ${quoted(value)}`);
  if (since) parts.push(`created_at >= ${quoted(since)}`);
  if (until) parts.push(`created_at < ${quoted(dayAfter(until))}`);
  return { filter: parts.join(" AND "), status: status === "any" ? STATUSES : status };
}

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

function dayAfter(day) {
  const time = new Date(`${day}T00:00:00Z`);
  time.setUTCDate(time.getUTCDate() + 1);
  return Number.isNaN(time.getTime()) ? day : time.toISOString().slice(0, 10);
}

function Browse({ args }) {
  const load = async (after) => {
    const { results, next } = await read("list", { ...selection(args), limit: 50, after });
    return { items: results, next };
  };
  return html`<${Card}><${LongList} label="Memories" load=${load} deps=${[JSON.stringify(args)]} height=${70} empty=${html`<${NoMemories}>Nothing is stored that fits these filters.</${NoMemories}>`} row=${(memory) => html`
    <${MemoryLink} id=${memory.id} title=${memory.content} /><${About} memory=${memory} oneLine />`} /></${Card}>`;
}

export function About({ memory, oneLine }) {
  return html`<div class=${`meta ${oneLine ? "one-line" : ""}`}>${memory.status !== "active" && html`<${Status} of=${memory.status} />`}<${Dated} memory=${memory} />
    ${memory.until && html`<a href=${address(`/memory/${encodeURIComponent(memory.updated_by)}`)}><${Tag} kind="info">until ${day(memory.until)}</${Tag}></a>`}
    <bdi>${visible(memory.category || memory.memory_type)}</bdi>${memory.agent_id && html`<bdi>${visible(memory.agent_id)}</bdi>`}${memory.project && html`<bdi>${visible(memory.project)}</bdi>`}
    ${memory.pinned && html`<${Tag} kind="info">pinned</${Tag}>`}${(memory.tags || []).slice(0, 6).map((tag) => html`<${Tag}>${visible(tag)}</${Tag}>`)}</div>`;
}

function Results({ args, change }) {
  const [limit, setLimit] = useState(20);
  useEffect(() => setLimit(20), [args.query]);
  const { query, mode, ranker, as_of, known_at } = args;
  const load = useLoad(() => read("explain", { query, mode, ranker, as_of, known_at, limit, ...selection(args) }), [JSON.stringify(args), limit]);
  return html`<div aria-busy=${load.busy}><${Loaded} of=${load}>${(found) => html`
    <${Summary} found=${found} />
    ${!found.answers.some((hit) => hit.relevant) && html`<div class="card card-empty"><h2>Nothing relevant is known.</h2>
      <${NoMemories}>${found.candidates ? `${plural(found.candidates, "memory was", "memories were")} compared; none is likely to answer this.` : "No memory has a word or a meaning in common with this."}</${NoMemories}></div>`}
    <${Hits} of=${found.answers.filter((hit) => hit.relevant)} found=${found} />
    ${found.answers.some((hit) => !hit.relevant) && html`<p class="below">Probably not relevant</p>`}
    <${Hits} of=${found.answers.filter((hit) => !hit.relevant)} found=${found} />
    ${found.mode === "precise" && found.left_out.min_score > 0 && html`<${Button} onClick=${() => change({ mode: "recall" })}>Show weaker ones</${Button}>`}
    ${found.left_out.limit > 0 && limit < 100 && html`<${Button} onClick=${() => setLimit(limit < 50 ? 50 : 100)}>Show more</${Button}>`}
    ${found.nearly?.length > 0 && html`<${Card} title="Just below the minimum score"><ul class="items">${found.nearly.map((hit) => html`<li key=${hit.id}>
      <${MemoryLink} id=${hit.id} title=${hit.content} /><div class="meta">${score(hit.score)}</div></li>`)}</ul></${Card}>`}`}</${Loaded}></div>`;
}

function Summary({ found }) {
  const reasons = Object.entries(found.left_out).filter(([, number]) => number).map(([name, number]) => `${count(number)} ${LEFT_OUT[name] || name.replaceAll("_", " ")}`);
  const typos = Object.entries(found.corrections);
  return html`<p class="meta" role="status">${plural(found.answers.length, "result")} of ${plural(found.documents, "memory", "memories")}
    ${reasons.length > 0 && html`<span>left out: ${reasons.join(", ")}</span>`}
    ${typos.length > 0 && html`<span>read as: ${typos.map(([from, to]) => `${from} → ${to}`).join(", ")}</span>`}
    ${!found.model && html`<span>compared by words only</span>`}</p>`;
}

const Hits = ({ of, found }) => of.map((hit) => html`<${Hit} key=${hit.id} hit=${hit} found=${found} />`);
const score = (value) => (value >= 0.1 ? percent(value) : `${(value * 100).toFixed(1)} %`);

function Hit({ hit, found }) {
  const marks = useMemo(() => marker(found), [found]);
  const short = hit.content.length <= 240 && !hit.passage;
  return html`<article class="card hit" data-item>
    <h2>${short ? html`<a class="text" dir="auto" href=${address(`/memory/${encodeURIComponent(hit.id)}`)}><${Text} marks=${marks}>${hit.content}</${Text}></a>` : html`<${MemoryLink} id=${hit.id} title=${hit.content} />`}</h2>
    ${!short && html`<div class=${hit.passage ? "passage found" : ""}><${Text} marks=${marks} limit=${900}>${hit.passage?.text ?? hit.content}</${Text}></div>`}
    <div class="row"><span class="score">${score(hit.score)}</span><${About} memory=${hit} /></div>
    <${Notes} hit=${hit} />
    <details><summary>Why this score</summary><${Why} hit=${hit} found=${found} /></details>
  </article>`;
}

function Notes({ hit }) {
  const notes = [
    hit.passage && `A passage of a memory with ${count(hit.content.length)} characters${hit.passage.section?.length ? `, under “${hit.passage.section.join(" › ")}”` : ""}`,
    hit.copies > 1 && `${hit.copies} memories with this text`,
    hit.valid_until && `valid until ${hit.valid_until.slice(0, 10)}`,
    hit.newer && (hit.until ? "what changed it is above" : "a newer version of it, or what held then, is above"),
  ].filter(Boolean);
  return notes.length > 0 && html`<p class="faint">${visible(notes.join(" · "))}</p>`;
}

/** What each signal added to the score (to the right) or took from it (to the left), largest first, as the server computed it.
 *  A part that would read 0.00 has no bar; it is in the sum. */
function Why({ hit, found }) {
  const fused = found.ranker === "rrf";
  const parts = hit.contributions || [];
  const largest = Math.max(...parts.map((part) => Math.abs(part.value)), 0.01);
  const sum = parts.reduce((total, part) => total + part.value, 0);
  const place = (part) => (fused && hit.channels?.[part.signal] ? ` (no. ${hit.channels[part.signal].rank})` : "");
  return html`<div class="why">
    ${parts.filter((part) => Math.abs(part.value) >= 0.005).map((part) => html`<${Part} key=${part.signal} value=${part.value} of=${largest} label=${`${capital(part.meaning)}${place(part)}`} text=${fused ? percent(part.value) : signed(part.value)} />`)}
    ${parts.length > 0 && !fused && html`<p class="sum">Together ${signed(sum)}: ${score(hit.score)} likely to answer</p>`}
    ${hit.word_pairs?.length > 0 && html`<p class="faint">Nearest words: ${visible(hit.word_pairs.map((pair) => `${pair.question} – ${pair.memory}`).join(", "))}</p>`}
    <p class="faint">${!parts.length ? "Nothing speaks for this memory." : fused ? "Rank fusion adds up the places; it does not say how likely an answer is."
      : `Log-odds, beside the mean of the candidates: 0 is 50 %, +1 is 73 %, −1 is 27 %. The ${found.ranker} ranker has its weights from questions with known answers.`}
      ${hit.trust !== undefined && html` Trust, ${percent(hit.trust)}, plays no part in it.`}</p>
  </div>`;
}

function Part({ value, of, label, text }) {
  const size = `${(50 * Math.abs(value)) / of}%`;
  return html`<div class="bar">
    <span class="bar-label">${label}</span>
    <span class=${`bar-track both ${value < 0 ? "bad" : ""}`} aria-hidden="true"><span style=${{ width: size, marginLeft: value < 0 ? `calc(50% - ${size})` : "50%" }}></span></span>
    <span class="bar-text">${text}</span>
  </div>`;
}

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** A function that says whether a word of a text is one of the query: stems are compared, without accents. */
function marker({ tokens = [], corrections = {} }) {
  const stems = [...tokens, ...Object.values(corrections)].map(plain).filter(Boolean);
  const known = new Map();
  return (word) => {
    const text = plain(word);
    if (!known.has(text)) known.set(text, stems.some((stem) => text === stem || (stem.length >= 3 && text.startsWith(stem) && text.length - stem.length <= 5) || (/[\u3040-\u9fff\uac00-\ud7af]/.test(stem) && text.includes(stem))));
    return known.get(text);
  };
}

const plain = (word) => word.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
