// Decide what to believe: quarantined memories and conflicts, each beside what it contradicts.
import { read, write } from "../api.js";
import { Bar, Button, Dated, Empty, Loaded, MemoryLink, ProblemBox, Status, Text, Title, html, plural, say, useEffect, useKey, useLoad, useRef, useState, useSession, visible } from "../ui.js";

const PAGE = 20;
// The key, the button, the decision about a quarantined memory, and what stays of a conflict alone.
const DECISIONS = [
  { key: "a", text: "Believe the new one", verb: "review-activate", keep: "new", done: "Activated" },
  { key: "r", text: "Reject it", verb: "review-reject", keep: "existing", done: "Rejected" },
  { key: "b", text: "Keep both", verb: "review-keep-both", keep: "both", done: "Kept both" },
];

export default function Review() {
  const [limit, setLimit] = useState(PAGE);
  const [decided, setDecided] = useState({}); // by id: {done} of this page, in the order of the list
  const [kept, setKept] = useState([]); // items stay where they are until the list is loaded anew
  const load = useLoad(() => waiting(limit), [limit]);
  useEffect(() => {
    if (load.data) setKept((before) => [...before.filter((item) => decided[item.id] || load.data.items.some((one) => one.id === item.id)), ...load.data.items.filter((item) => !before.some((one) => one.id === item.id))]);
  }, [load.data]);
  const open = kept.filter((item) => !decided[item.id]);
  const [chosen, setChosen] = useState(null);
  const current = open.find((item) => item.id === chosen) || open[0];
  const list = useRef();
  const undone = useRef([]); // the ids of the decisions of this page, the last one at the end

  const [touched, setTouched] = useState({}); // how often a memory was changed by a decision of this page
  const touch = ({ memory, changed = [] }) => setTouched((before) => Object.fromEntries([...Object.entries(before), ...[memory, ...changed].map((one) => [one.id, (before[one.id] || 0) + 1])]));
  const mark = (item, state) => setDecided((before) => ({ ...before, [item.id]: state }));
  const decide = async (item, decision, reason) => {
    const about = item.memory ? { memory_id: item.memory.id } : { conflict_id: item.conflicts[0].id, keep: decision.keep };
    touch(await write(item.memory ? decision.verb : "resolve-conflict", { ...about, reason: reason || undefined }));
    mark(item, { done: decision.done });
    undone.current.push(item);
    const next = open[open.indexOf(item) + 1];
    if (next) focusCard(list.current, next.id);
    say(`${decision.done}.`, { undo: () => undo(item) });
  };
  const undo = async (item) => {
    const about = item.memory?.id || item.conflicts[0].ref;
    touch(await write("review-undo", { memory_id: about }));
    undone.current = undone.current.filter((one) => one !== item);
    mark(item, undefined);
    setChosen(item.id);
    say("Undone: it waits for a review again.");
    load.again();
  };
  useKey("u", () => {
    const last = undone.current.at(-1);
    if (last) undo(last).catch((problem) => say(`${problem.what}. ${problem.remedy}`, { bad: true }));
  });
  return html`<${Title} note=${load.data && (open.length ? `${plural(open.length, "decision")}${load.data.more ? " or more" : ""} to make` : "")}
      actions=${html`<${Button} onClick=${() => { setDecided({}); setKept([]); undone.current = []; load.again(); }}>Reload</${Button}>`}>Review</${Title}>
    <${Loaded} of=${load}>${() => html`
      ${!kept.length && !load.busy && html`<div class="card card-empty"><h2>Nothing waits for a review.</h2><p class="faint">New claims that contradict what is known, and memories that were disputed, appear here.</p></div>`}
      <div ref=${list}>${kept.map((item) => html`<${Decision} key=${item.id} item=${item} state=${decided[item.id]} chosen=${item === current} choose=${() => setChosen(item.id)}
        touched=${touched} decide=${decide} undo=${() => undo(item)} elsewhere=${(text) => mark(item, { done: text, elsewhere: true })} />`)}</div>
      ${load.data?.more && html`<${Button} onClick=${() => setLimit(limit + PAGE)}>Show more</${Button}>`}`}</${Loaded}>`;
}

/** What waits: quarantined memories with their conflicts, and conflicts between memories that are both active. */
async function waiting(limit) {
  const [quarantined, pending] = await Promise.all([read("quarantined", { limit: limit + 1 }), read("conflicts", { status: "pending" })]);
  const memories = quarantined.results.slice(0, limit);
  const about = (id) => pending.results.filter((conflict) => conflict.ref === id);
  const items = memories.map((memory) => ({ id: memory.id, memory, conflicts: about(memory.id) }));
  const known = new Set(quarantined.results.map((memory) => memory.id));
  const more = quarantined.results.length > limit;
  const alone = more ? [] : pending.results.filter((conflict) => !known.has(conflict.ref)).slice(0, limit);
  return { items: [...items, ...alone.map((conflict) => ({ id: conflict.id, conflicts: [conflict] }))], more };
}

function focusCard(list, id) {
  const card = [...list.querySelectorAll("[data-item]")].find((one) => one.dataset.item === id);
  card?.focus();
  card?.scrollIntoView({ block: "nearest" });
}

function Decision({ item, state, chosen, choose, touched, decide, undo, elsewhere }) {
  const busy = useRef(false);
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState(null);
  const session = useSession();
  const newId = item.memory?.id || item.conflicts[0].ref;
  const act = async (decision) => {
    if (busy.current) return; // a key that is pressed twice
    busy.current = true;
    setProblem(null);
    try {
      await decide(item, decision, reason.trim());
    } catch (failed) {
      const now = failed.status === 400 || failed.status === 404 || failed.status === 409 ? await decidedElsewhere(item, newId) : null;
      if (now) elsewhere(now);
      else setProblem(failed);
    }
    busy.current = false;
  };
  const key = (decision) => useKey(decision.key, () => chosen && !state && !session.read_only && act(decision), [chosen, state, reason, decide]);
  DECISIONS.forEach(key);
  if (state) return html`<div class="card row spread" role="status"><span><strong>${state.done}</strong> <${MemoryLink} id=${newId} title=${item.memory?.content || item.conflicts[0].why} /></span>
    ${!state.elsewhere && html`<${Button} writes class="small" onClick=${undo} keys="u">Undo</${Button}>`}</div>`;
  return html`<article class=${`card decision ${chosen ? "chosen" : ""}`} data-item=${item.id} tabindex="-1" aria-label=${`Decision about ${(item.memory?.content || item.conflicts[0].why).slice(0, 80)}`} onFocusCapture=${choose}>
    ${item.conflicts[0]?.why && html`<p><strong>${visible(item.conflicts[0].why)}</strong></p>`}
    <div class="sides"><${Side} title="New, waits for you" id=${newId} turn=${touched[newId]} />
      ${item.conflicts.map((conflict) => html`<${Side} key=${conflict.id} title="Known so far" id=${conflict.target} turn=${touched[conflict.target]} />`)}
      ${!item.conflicts.length && html`<div class="side"><h3>Known so far</h3><${Empty}>It contradicts no other memory. It was stored for a review, or was disputed.</${Empty}></div>`}</div>
    ${problem && html`<${ProblemBox} problem=${problem} />`}
    ${!session.read_only && html`<div class="actions">${DECISIONS.filter((one) => item.conflicts.length || one.key !== "b").map((one) => html`<${Button} key=${one.key} writes kind=${one.key === "a" ? "primary" : ""} keys=${one.key} onClick=${() => act(one)}>${item.conflicts.length ? one.text : one.text.replace(" the new one", " it")}</${Button}>`)}
      <input class="reason" aria-label="Reason, for the history" placeholder="Reason, for the history" value=${reason} onInput=${(event) => setReason(event.target.value)} /></div>`}
  </article>`;
}

/** Say what someone else decided meanwhile, or return null if it still waits. */
async function decidedElsewhere(item, id) {
  try {
    const { memory } = await read("explain-memory", { memory_id: id });
    if (item.memory ? memory.status === "quarantined" : (await read("conflicts", { status: "pending" })).results.some((one) => one.id === item.id)) return null;
    return `Decided by someone else meanwhile; it is ${memory.status}.`;
  } catch (problem) {
    return problem.status === 404 ? "Erased by someone else meanwhile." : null;
  }
}

function Side({ title, id, turn }) {
  const load = useLoad(() => read("explain-memory", { memory_id: id }), [id, turn]);
  return html`<div class="side"><h3>${title}</h3><${Loaded} of=${load}>${({ memory, trust, claim, provenance }) => html`
    <${Text} limit=${600}>${memory.content}</${Text}>
    ${claim && html`<p class="claim"><bdi>${visible(claim.subject)}</bdi> · <bdi>${visible(claim.predicate)}</bdi> = <strong><bdi>${visible(String(claim.value))}</bdi></strong></p>`}
    <${Bar} value=${trust.value} label="Trust" />
    <div class="meta"><${Status} of=${memory.status} />${provenance?.source && html`<span>${visible(String(provenance.source).replaceAll("_", " "))}</span>`}${memory.agent_id && html`<bdi>${visible(memory.agent_id)}</bdi>`}<${Dated} memory=${memory} />
      <a href=${`#/memory/${encodeURIComponent(id)}`}>Open</a></div>`}</${Loaded}></div>`;
}
