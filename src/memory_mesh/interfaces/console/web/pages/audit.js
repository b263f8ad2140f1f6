// Audit: the chains of blocks, whether they are sound, their anchors, and the newest blocks.
import { page, read } from "../api.js";
import { Button, Card, Choice, Empty, Loaded, ProblemBox, Table, Tag, Title, When, count, html, plural, useLoad, useState, visible } from "../ui.js";
import { Pairs, cut } from "./parts.js";

const OPERATIONS = ["", "retain", "recall", "reflect", "synthesize", "lesson"];
const nameOf = (chain) => `${chain.kind === "recalls" ? "Searches" : "Memories"} of ${cut(chain.agent_id || "unknown", 60)}${chain.user_id ? `, user ${cut(chain.user_id, 60)}` : ""}`;
const short = (hash) => html`<code title=${hash || ""}>${hash ? `${hash.slice(0, 12)}…` : "none"}</code>`;

export default function Audit() {
  const load = useLoad(() => read("audit head"), []);
  return html`<${Title} note="Every change leaves a block. Each block seals the one before it, so that a later change is found.">Audit</${Title}>
    <div><${Loaded} of=${load}>${({ results }) => (results.length ? html`<${Chains} heads=${results} />`
      : html`<${Card} class="card-empty"><${Empty}>There are no chains yet. The first change of the memory writes the first block.</${Empty}></${Card}>`)}</${Loaded}></div>
    <${Blocks} />`;
}

/** The chains, verified one after another so that a long one is seen to be in work. */
function Chains({ heads }) {
  const [verdicts, setVerdicts] = useState({});
  const [working, setWorking] = useState("");
  const [problem, setProblem] = useState(null);
  const done = Object.values(verdicts);
  const broken = done.filter((one) => !one.ok);
  const verify = async () => {
    setProblem(null);
    setVerdicts({});
    try {
      for (const head of heads) {
        setWorking(head.chain);
        const found = await read("audit verify", { agent_id: head.agent_id, recalls: head.kind === "recalls" });
        const own = found.results.find((one) => one.chain === head.chain);
        setVerdicts((before) => ({ ...before, [head.chain]: own || { ok: false, number: head.number, reason: "the chain is gone" } }));
      }
    } finally {
      setWorking("");
    }
  };
  const state = (head) => {
    const verdict = verdicts[head.chain];
    if (working === head.chain) return html`<${Tag} kind="info">checking …</${Tag}>`;
    if (!verdict) return html`<${Tag}>not checked yet</${Tag}>`;
    return verdict.ok ? html`<${Tag} kind="good">sound</${Tag}>` : html`<${Tag} kind="bad">broken at block ${verdict.number}</${Tag}>`;
  };
  return html`<${Card} class="wide" title="Chains" note=${heads.length}>
      <${Table} label="Chains" rows=${heads.map((head) => ({ ...head, id: head.chain }))} columns=${[
        { title: "Chain", cell: (head) => html`<bdi>${visible(nameOf(head))}</bdi>` }, { title: "Blocks", class: "number", cell: (head) => count(head.number) },
        { title: "Seal of the last block", cell: (head) => short(head.seal || head.block_hash) },
        { title: "Signature", cell: (head) => verdicts[head.chain]?.signature || (head.key_id ? html`<span>signed, key ${short(head.key_id)}</span>` : "not signed") }, { title: "State", cell: state }]} />
      <div class="actions"><${Button} kind="primary" onClick=${verify} onProblem=${setProblem}>Verify now</${Button}></div>
      ${problem && html`<${ProblemBox} problem=${problem} again=${verify} />`}
      <div role="status" aria-live="polite">
        ${working && html`<label class="progress">Checking chain ${done.length + 1} of ${heads.length} <progress max=${heads.length} value=${done.length}></progress></label>`}
        ${!working && done.length === heads.length && !broken.length && html`<p class="verdict good">All ${plural(heads.length, "chain")} sound: nothing that the blocks name was changed without memory-mesh.</p>`}
        ${!working && broken.length > 0 && html`<p class="verdict bad">${plural(broken.length, "chain")} broken. Nothing is repaired, and writing goes on. Keep a copy of the store, the key file and the anchors, then look for the cause.</p>`}
      </div>
      ${broken.length > 0 && html`<${Pairs} of=${broken.map((one) => [nameOf(one), `Block ${one.number}: ${one.reason}`])} />`}
      ${done.some((one) => one.caution || one.withheld) && html`<${Pairs} of=${done.filter((one) => one.caution || one.withheld).map((one) => [nameOf(one), [one.withheld ? `${one.withheld} blocks checked by hash and seal only` : "", one.caution].filter(Boolean).join("; ")])} />`}
    </${Card}>
    <${Anchors} heads=${heads} />`;
}

/** Anchors are written outside the store, so the page says what to note and how to compare. */
function Anchors({ heads }) {
  const anchors = useLoad(() => page("anchors"), []);
  const copy = heads.map((head) => `${head.number}:${head.seal || head.block_hash}  ${nameOf(head)}`).join("\n");
  return html`<${Card} title="Anchors">
    <p>An older copy of the whole store is sound too. Only an anchor shows that it is old: the last block of each chain (its head), noted elsewhere.</p>
    <div><${Loaded} of=${anchors}>${(data) => html`<p>${data.heads.length ? html`The last anchor was written${data.time && html` <${When} at=${data.time} />`}; it names ${plural(data.heads.length, "chain")}${heads.every((head) => data.heads.some((one) => one.chain === head.chain && one.block_hash === head.block_hash)) ? ", and no block is newer" : ", and newer blocks are not anchored yet"}.` : data.configured ? "The next run of the maintenance jobs (heartbeat) writes the first anchor." : html`No anchor is written by itself. Set <code>audit_anchor</code> to a file on another disk, or run <code>memory-mesh audit anchor --to FILE</code>.`}</p>`}</${Loaded}></div>
    <details><summary data-item>Heads to note by hand</summary><pre tabindex="0" aria-label="Heads of the chains">${copy}</pre>
      <p class="faint">Compare later with <code>memory-mesh audit verify --head NUMBER:SEAL</code>.</p></details>
  </${Card}>`;
}

function Blocks() {
  const [kind, setKind] = useState("");
  const [operation, setOperation] = useState("");
  const [limit, setLimit] = useState(25);
  const load = useLoad(() => read("audit log", { limit, recalls: kind, operation }), [limit, kind, operation]);
  return html`<${Card} class="wide" title="Newest blocks">
    <div class="row controls"><${Choice} label="Chains" value=${kind} options=${[["", "All"], ["false", "Memories"], ["true", "Searches"]]} onChange=${setKind} />
      <label class="row"><span>Operation</span><select value=${operation} onChange=${(event) => setOperation(event.target.value)}>${OPERATIONS.map((one) => html`<option value=${one}>${one || "all"}</option>`)}</select></label></div>
    <${Loaded} of=${load}>${({ results }) => html`<${Table} label="Newest blocks" rows=${results} empty="No block matches." columns=${[
        { title: "Time", cell: (one) => html`<${When} at=${one.timestamp} exact />` }, { title: "Block", class: "number", cell: (one) => one.number }, { title: "Operation", cell: (one) => one.operation_type },
        { title: "Agent", cell: (one) => html`<bdi>${visible(one.agent_id || "unknown")}</bdi>` }, { title: "About", cell: (one) => html`<div>${about(one)}</div>` }, { title: "Seal", cell: (one) => short(one.seal) }]} />
      ${results.length === limit && html`<button class="button" type="button" onClick=${() => setLimit(limit + 50)}>Show more</button>`}`}</${Loaded}>
  </${Card}>`;
}

/** What a block is about: its memory, its query, or why its text is not there. */
function about(block) {
  const id = block.ref?.startsWith("mem_") && html`<a href=${`#/memory/${encodeURIComponent(block.ref)}`}>${block.ref}</a>`;
  if (block.yamo_text === "withheld") return html`${id} <span class="faint">of another agent or session</span>`;
  if (block.yamo_text === "erased") return html`<span class="faint">its text is erased</span>`;
  const value = (name) => new RegExp(`^  ${name};(.*);$`, "m").exec(block.yamo_text)?.[1];
  const text = value("query") ?? value("content_preview") ?? value("insight_preview") ?? value("preventative_rule") ?? "";
  return html`${id} <bdi class="clamp">${visible(text.slice(0, 200))}</bdi>`;
}
