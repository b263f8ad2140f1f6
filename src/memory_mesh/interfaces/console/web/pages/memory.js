// One memory: what it says, how far it is trusted and why, where it came from, and what happened to it.
import { page, read, write } from "../api.js";
import { Bar, Button, Card, Confirm, Dated, Empty, Field, Loaded, MemoryLink, OutLink, Status, Tag, Text, Title, When, count, html, navigate, percent, plural, say, useLoad, useMemo, useState, visible } from "../ui.js";
import { Timeline } from "./changes.js";

export default function MemoryPage({ route }) {
  const id = route.parts[1] || "";
  const load = useLoad(() => page("memory", { id }), [id]);
  return html`<${Loaded} of=${load}>${(data) => html`<${View} key=${data.memory.id} data=${data} again=${load.again} />`}</${Loaded}>
    ${load.problem && !load.data && html`<p><a href="#/search">Search for another memory</a></p>`}`;
}

function View({ data, again }) {
  const { memory } = data;
  const [editing, setEditing] = useState(false);
  return html`<${Title} note=${html`<${About} memory=${memory} />`} actions=${html`<${Actions} memory=${memory} again=${again} edit=${() => setEditing(true)} />`}>Memory</${Title}>
    <div class="columns"><div>
      <${Card}>${editing ? html`<${Edit} memory=${memory} close=${() => setEditing(false)} again=${again} />` : html`<div class="content"><${Text}>${memory.content}</${Text}></div>`}
        ${memory.tags?.length > 0 && html`<p class="after row">${memory.tags.map((tag) => html`<a href=${`#/search?${new URLSearchParams({ tag })}`}><${Tag}>${visible(tag)}</${Tag}></a>`)}</p>`}</${Card}>
      <${Changes} memory=${memory} again=${again} />
      <${History} memory=${memory} changes=${data.history || []} />
      ${data.passages?.length > 1 && html`<${Passages} passages=${data.passages} />`}
      <${Links} data=${data} />
    </div><div>
      ${data.trust && html`<${Trust} trust=${data.trust} />`}
      ${(data.claim || memory.claim) && html`<${Claim} claim=${data.claim || memory.claim} memory=${memory} />`}
      ${data.conflicts?.length > 0 && html`<${Conflicts} data=${data} />`}
      <${Provenance} memory=${memory} provenance=${data.provenance} />
      <${Sightings} list=${data.sightings || []} memory=${memory} />
      ${data.blocks && html`<${Blocks} blocks=${data.blocks} />`}
    </div></div>`;
}

const About = ({ memory }) => html`<span class="meta"><${Status} of=${memory.status} />${memory.sealed === false && html`<${Tag} kind="bad">not sealed</${Tag}>`}${memory.pinned && html`<${Tag} kind="info">pinned</${Tag}>`}
  <bdi>${visible(memory.category || memory.memory_type)}</bdi><${Dated} memory=${memory} />
  <span>${memory.access_count ? `found ${plural(memory.access_count, "time")}` : "not found by a search yet"}</span><code>${memory.id}</code></span>`;

// What a person may do ---------------------------------------------------------------------------------------------------

function Actions({ memory, again, edit }) {
  const [erasing, setErasing] = useState(false);
  const id = memory.id;
  const archived = memory.status === "archived";
  const pin = async () => {
    await write("pin", { id, pinned: !memory.pinned });
    say(memory.pinned ? "No longer pinned." : "Pinned: it never decays.");
    again();
  };
  const restore = async () => {
    await write("unarchive", { memory_id: id });
    say("It is active again.");
    again();
  };
  const archive = async () => {
    await write("archive", { memory_id: id });
    say("Archived: searches no longer return it.", { undo: restore });
    again();
  };
  return html`<${Button} writes onClick=${pin}>${memory.pinned ? "Unpin" : "Pin"}</${Button}>
    <${Button} writes onClick=${edit}>Edit</${Button}>
    <${Button} writes onClick=${archived ? restore : archive}>${archived ? "Unarchive" : "Archive"}</${Button}>
    <${Button} writes kind="danger" onClick=${() => setErasing(true)}>Erase …</${Button}>
    ${erasing && html`<${Erase} memory=${memory} close=${() => setErasing(false)} />`}`;
}

function Erase({ memory, close }) {
  const preview = useLoad(() => page("erase-preview", { id: memory.id }));
  const erase = async () => {
    await write("forget", { id: memory.id });
    say("Erased for good.");
    navigate("/");
  };
  return html`<${Confirm} title="Erase this memory for good?" action="Erase for good" danger disabled=${!preview.data} onYes=${erase} onNo=${close}>
    <p>This cannot be undone. “Archive” hides a memory and keeps it.</p>
    <blockquote class="passage"><${Text} limit=${300}>${memory.content}</${Text}></blockquote>
    <${Loaded} of=${preview}>${(data) => html`<${Along} data=${data} />`}</${Loaded}></${Confirm}>`;
}

function Along({ data }) {
  const along = data.erased.slice(1);
  const list = (title, memories) => memories?.length > 0 && html`<p>${title}</p><ul class="items">${memories.slice(0, 20).map((one) => html`<li key=${one.id}><${MemoryLink} id=${one.id} title=${one.title} /></li>`)}</ul>
    ${memories.length > 20 && html`<p class="faint">and ${count(memories.length - 20)} more</p>`}`;
  return html`${along.length ? list(`${plural(along.length, "memory that was", "memories that were")} made from it will be erased, too:`, along) : html`<p>No other memory goes with it.</p>`}
    ${list("These stay, and lose what they have from it:", data.changed)}${list("These stay as they are:", data.kept)}
    ${data.hidden > 0 && html`<p>${plural(data.hidden, "more memory", "more memories")} made from it, which you cannot see, will be erased or lose what they have from it.</p>`}
    <p class="faint">${plural(data.rows ?? 1, "row")} of the store: the memory, its history, who stored it, and its links${data.notes ? `, ${plural(data.notes, "note")}` : ""}${data.traces ? `, ${plural(data.traces, "trace")}` : ""}.</p>`;
}

function Edit({ memory, close, again }) {
  const [text, setText] = useState(memory.content);
  const [tags, setTags] = useState((memory.tags || []).join(", "));
  const [why, setWhy] = useState("");
  const [other, setOther] = useState(null); // what someone else saved meanwhile
  const save = async () => {
    const now = await read("get", { id: memory.id });
    if (now.revision !== (other || memory).revision) return setOther(now);
    const list = tags.split(",").map((tag) => tag.trim()).filter(Boolean);
    const changes = { id: memory.id, why: why || undefined };
    if (text !== now.content) changes.content = text;
    if (list.join() !== (now.tags || []).join()) changes.metadata = { ...now.metadata, tags: list };
    if (!changes.content && !changes.metadata) return close();
    await write("update", changes);
    say("Saved. The earlier text stays in the history.");
    close();
    return again();
  };
  return html`<div class="stack">
    <${Field} label="Text"><textarea dir="auto" value=${text} onInput=${(event) => setText(event.target.value)}></textarea></${Field}>
    <${Field} label="Tags, separated by commas"><input value=${tags} onInput=${(event) => setTags(event.target.value)} /></${Field}>
    <${Field} label="Why (for the history)"><input value=${why} onInput=${(event) => setWhy(event.target.value)} /></${Field}>
    ${memory.claim && html`<p class="faint">A new text may say something else, so it loses its claim.</p>`}
    ${other && html`<div class="problem" role="alert"><strong>Someone changed this memory while you wrote.</strong><p>Its text is now:</p><${Text} limit=${600}>${other.content}</${Text}><p>“Save” replaces it with yours; both stay in the history.</p></div>`}
    <div class="actions"><${Button} kind="primary" writes disabled=${!text.trim()} onClick=${save}>Save</${Button}><${Button} onClick=${close}>Cancel</${Button}></div>
  </div>`;
}

// What is known about it -------------------------------------------------------------------------------------------------

const TRUST = [["base", "Its source"], ["corroboration", "Said by others too"], ["feedback", "Feedback"], ["age", "Its age"]];

function Trust({ trust }) {
  return html`<${Card} title="Trust" note=${percent(trust.value)}>
    ${TRUST.filter(([name]) => trust[name] !== undefined).map(([name, label]) => html`<${Bar} value=${trust[name]} label=${label} text=${signed(trust[name])} kind=${name === "base" ? "" : "quiet"} />`)}
    ${trust.sources !== undefined && html`<p class="faint">It is trusted no more than the least trusted memory it was made from.</p>`}</${Card}>`;
}

const signed = (value) => `${value > 0.00499 ? "+" : value < -0.00499 ? "−" : ""}${Math.abs(value).toFixed(2)}`;

function Claim({ claim, memory }) {
  const from = claim.window?.start || memory.valid_from;
  const until = claim.window?.end || memory.valid_until;
  return html`<${Card} title="Claim"><p class="claim"><bdi>${visible(claim.subject)}</bdi> · <bdi>${visible(claim.predicate)}</bdi> = <strong><bdi>${visible(String(claim.value))}</bdi></strong></p>
    <p class="faint">${claim.exclusive === false ? "Other values may be true as well." : "Only one value can be true."}
      ${from && html` Valid from <${When} at=${from} exact />.`}${until && html` Valid until <${When} at=${until} exact />.`}</p></${Card}>`;
}

function Conflicts({ data }) {
  return html`<${Card} title="Conflicts"><ul class="items">${data.conflicts.map((conflict) => {
    const other = conflict.ref === data.memory.id ? conflict.target : conflict.ref;
    return html`<li key=${conflict.id}><${Tag} kind=${conflict.status === "pending" ? "warn" : ""}>${conflict.status}</${Tag}> ${visible(conflict.why || "")}
      <br /><${MemoryLink} id=${other} title=${data.contents?.[other] || other} /></li>`;
  })}</ul>${data.conflicts.some((one) => one.status === "pending") && html`<p class="after"><a class="button" href="#/review">Decide in the review</a></p>`}</${Card}>`;
}

function Provenance({ memory, provenance = {} }) {
  const rows = [
    ["Stored by", memory.agent_id], ["User", memory.user_id], ["Session", memory.session_id], ["Project", memory.project], ["Said by", memory.speaker], ["Key", memory.key],
    ["Importance", memory.importance?.toFixed(2)], ["Changed", memory.updated_at !== memory.created_at && html`<${When} at=${memory.updated_at} exact />`], ["Stored", html`<${When} at=${memory.created_at} exact />`], ["Happened", memory.event_time && html`<${When} at=${memory.event_time} exact />`],
    ["Expires", memory.expires_at && html`<${When} at=${memory.expires_at} exact />`],
    ...Object.entries(provenance).map(([name, value]) => [capital(name), name === "source" ? String(value).replaceAll("_", " ") : value]),
    ...Object.entries(memory.metadata || {}).filter(([name]) => !KNOWN.has(name)).map(([name, value]) => [capital(name), value]),
    ["Masked", Object.entries(memory.redactions || {}).map(([name, number]) => `${number} ${name}`).join(", ")],
  ].filter(([, value]) => value);
  return html`<${Card} title="Provenance"><dl class="pairs">${rows.map(([name, value]) => html`<dt><bdi>${visible(name)}</bdi></dt><dd>${shown(value)}</dd>`)}</dl>
    ${memory.sources?.length > 0 && html`<p class="after">Made from ${memory.sources.map((id) => html`<br /><${MemoryLink} id=${id} />`)}</p>`}</${Card}>`;
}

const capital = (name) => (name[0] || "").toUpperCase() + name.slice(1).replaceAll("_", " ");
const KNOWN = new Set(["tags", "type", "category", "importance", "provenance", "claim"]);

function shown(value) {
  if (typeof value === "string") return /^https?:\/\//i.test(value) ? html`<${OutLink} url=${value} />` : html`<${Text} limit=${300}>${value}</${Text}>`;
  return value?.constructor === undefined || typeof value !== "object" ? value : html`<${Text} limit=${300}>${JSON.stringify(value)}</${Text}>`;
}

function Passages({ passages }) {
  return html`<${Card} title="Passages" note=${count(passages.length)}><details><summary>Show how it is split for the search</summary><div class="stack after">${passages.map((passage, index) => html`<div class="passage" key=${index}>
    ${passage.section?.length > 0 && html`<h3>${visible(passage.section.join(" › "))}</h3>`}<${Text} limit=${400}>${passage.text}</${Text}></div>`)}</div></details></${Card}>`;
}

const CHANGES = new Set(["updates", "ends", "both_hold"]);

/** The statements that changes connect with this one. */
function Changes({ memory, again }) {
  const load = useLoad(() => read("changes", { about: memory.id }), [memory.id, memory.revision]);
  const both = () => { load.again(); again(); };
  return load.data?.count > 0 && html`<${Card} title="What changed" note=${count(load.data.count)}><${Timeline} changes=${load.data.results} again=${both} /></${Card}>`;
}

function Links({ data }) {
  const { memory, contents = {}, supersessions = [] } = data;
  const links = (data.links || []).filter((link) => !CHANGES.has(link.link_type));
  const others = links.map((link) => ({ ...link, other: link.ref === memory.id ? link.target : link.ref, outgoing: link.ref === memory.id }));
  const replaced = [...(memory.supersedes || []).map((id) => [id, "It replaced"]), ...(memory.superseded_by ? [[memory.superseded_by, "Replaced by"]] : [])];
  const reason = (id) => supersessions.find((one) => [one.older, one.newer].includes(id) && [one.older, one.newer].includes(memory.id))?.why;
  if (!data.links && !replaced.length) return null;
  return html`<${Card} title="Links" note=${count(others.length + replaced.length)}>
    ${!others.length && !replaced.length && html`<${Empty}>It is linked with no other memory.</${Empty}>`}
    <ul class="items">${replaced.map(([id, how]) => html`<li key=${id}><${Tag} kind="info">${how}</${Tag}> <${MemoryLink} id=${id} title=${contents[id]} />${reason(id) && html`<div class="faint">${visible(reason(id))}</div>`}</li>`)}
    ${others.map((link) => html`<li key=${link.id}><div class="meta"><span>${link.outgoing ? "→" : "←"} ${visible(link.link_type || "linked")}</span>${link.similarity !== undefined && html`<span>${percent(link.similarity)} similar</span>`}</div>
      <${MemoryLink} id=${link.other} title=${contents[link.other]} /></li>`)}</ul></${Card}>`;
}

/** Who stored the same text again. The number counts everyone; the list has those whom the reader may see. */
function Sightings({ list, memory }) {
  if (!list.length) return null;
  const times = Math.max(memory.times_observed || 1, list.reduce((sum, one) => sum + (one.times_observed || 1), 0));
  return html`<${Card} title="Sightings" note=${`stored ${plural(times, "time")}`}><ul class="items">${list.map((one) => html`<li key=${one.id}><bdi>${visible(one.agent_id || "someone")}</bdi>${one.session_id && html` in <bdi>${visible(one.session_id)}</bdi>`}
    <div class="meta"><span>${plural(one.times_observed || 1, "time")}</span><span>last <${When} at=${one.last_observed || one.created_at} /></span></div></li>`)}</ul></${Card}>`;
}

function Blocks({ blocks }) {
  return html`<${Card} title="Audit blocks" note=${count(blocks.length)}>${!blocks.length && html`<${Empty}>No audit block is about it.</${Empty}>`}
    <ul class="items">${blocks.map((block) => html`<li key=${block.id}><div class="row spread"><span>${block.action || block.operation_type}</span><${Tag} kind=${block.seal ? "good" : "warn"}>${block.seal ? "sealed" : "not sealed"}</${Tag}></div>
      <div class="meta"><${When} at=${block.timestamp} /><span>block ${block.number}</span>${block.seal && html`<code title=${block.seal}>${block.seal.slice(0, 12)}…</code>`}${block.withheld && html`<span>text withheld</span>`}</div></li>`)}</ul></${Card}>`;
}

// History ----------------------------------------------------------------------------------------------------------------

const ACTIONS = {
  add: "Stored", update: "Changed", observe: "Stored again", heritage: "Reasons added", pin: "Pinned", unpin: "Unpinned", supersede: "Superseded", corroborate: "Confirmed by another source",
  reinforce: "Reinforced", dispute: "Disputed", activate: "Activated by a review", reject: "Rejected by a review", keep_both: "Kept beside the other by a review", undo: "Review undone",
  decay: "Archived because it was weak", archive: "Archived", unarchive: "Made active again", changes: "Compared with older memories",
};
const QUIET = new Set(["last_observed", "updated_at", "revision"]); // a change of these says no more than the line above

function History({ memory, changes }) {
  const steps = useMemo(() => withResults(memory, changes).reverse(), [memory, changes]);
  if (!steps.length) return null;
  return html`<${Card} title="History" note=${plural(steps.length, "change")}><ol class="items">${steps.map((step) => html`<li key=${step.number}>
    <div class="row"><strong>${ACTIONS[step.action] || step.action.replaceAll("_", " ")}</strong><span class="meta"><${When} at=${step.created_at} />${step.agent_id && html`<span>by <bdi>${visible(step.agent_id)}</bdi></span>`}</span></div>
    ${step.why && html`<p class="faint">${visible(step.why)}</p>`}
    ${step.fields.map(([name, before, after]) => (name === "content" ? html`<${Diff} before=${before} after=${after} />` : html`<p class="faint">${name.replaceAll("_", " ")}: <del>${visible(brief(before))}</del> → ${visible(brief(after))}</p>`))}
  </li>`)}</ol></${Card}>`;
}

const brief = (value) => (value === null || value === undefined ? "none" : typeof value === "string" ? value : JSON.stringify(value)).slice(0, 200);

/** Each change with its fields as [name, before, after]: the value after a change is the one before the next change of that field. */
function withResults(memory, changes) {
  const later = { ...memory };
  return [...changes].reverse().map((change) => {
    const fields = Object.entries(change.before || {}).filter(([name]) => !QUIET.has(name)).map(([name, before]) => [name, before, later[name]]);
    Object.assign(later, change.before);
    return { ...change, fields };
  }).reverse();
}

export function Diff({ before, after }) {
  const parts = useMemo(() => wordDiff(String(before ?? ""), String(after ?? "")), [before, after]);
  const [all, setAll] = useState(false);
  const shown = all ? parts : parts.slice(0, 200);
  return html`<div class="text diff" dir="auto">${shown.map(([kind, text]) => (kind === "+" ? html`<ins>${visible(text)}</ins>` : kind === "-" ? html`<del>${visible(text)}</del>` : visible(text.length > 240 && !all ? `${text.slice(0, 100)} … ${text.slice(-100)}` : text)))}</div>
    ${(parts.length > shown.length || parts.some(([kind, text]) => !kind && text.length > 240)) && !all && html`<button type="button" class="button small" onClick=${() => setAll(true)}>Show the whole text</button>`}`;
}

const LARGEST_TABLE = 4_000_000;
const LONGEST = 20_000;

/** The differences of two texts by words, as [kind, text] with kind "", "-" or "+": the longest common subsequence. */
export function wordDiff(before, after) {
  const [a, b] = [before, after].map((text) => (text.length > LONGEST ? [`${text.slice(0, LONGEST)} …`] : text.match(/\s+|[\p{L}\p{N}\p{M}_]+|[^\s\p{L}\p{N}\p{M}_]/gu) || []));
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = between(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return joined([...a.slice(0, start).map((word) => ["", word]), ...middle, ...a.slice(a.length - end).map((word) => ["", word])]);
}

function between(a, b) {
  if (a.length * b.length > LARGEST_TABLE) return [["-", a.join("")], ["+", b.join("")]];
  const width = b.length + 1;
  const table = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
  }
  const parts = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) parts.push(["", a[i++]]) && j++;
    else if (j >= b.length || (i < a.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) parts.push(["-", a[i++]]);
    else parts.push(["+", b[j++]]);
  }
  return parts;
}

function joined(parts) {
  const result = [];
  for (const [kind, text] of parts) {
    if (result.length && result.at(-1)[0] === kind) result.at(-1)[1] += text;
    else result.push([kind, text]);
  }
  return result;
}
