// Traces: what was executed, how it ended, and what was learnt from similar runs.
import { read, write } from "../api.js";
import { Button, Card, Choice, Empty, Loaded, MemoryLink, ProblemBox, Tag, Text, Title, When, address, html, navigate, plural, say, useLoad, useState, visible } from "../ui.js";
import { Filter, Pairs, cut } from "./parts.js";

const MORE = 50;
const mark = (status) => html`<${Tag} kind=${status === "success" ? "good" : "bad"}>${status}</${Tag}>`;

export default function Traces({ route }) {
  return route.parts[1] ? html`<${Trace} id=${route.parts[1]} />` : html`<${List} route=${route} />`;
}

function List({ route }) {
  const goal = route.args.get("goal") || "";
  const archived = route.args.get("archived") === "yes";
  const [limit, setLimit] = useState(MORE);
  const load = useLoad(() => (goal ? read("trace similar", { goal, limit: 20, min_similarity: 0.2 }) : read("trace list", { limit, archived: archived || undefined })), [goal, limit, archived]);
  const go = (args) => navigate("/traces", { goal, archived: archived ? "yes" : "", ...args }, { replace: true });
  return html`<${Title} note="A trace records one execution: the goal, the steps, how it ended.">Traces</${Title}>
    <div class="row"><${Filter} label="Find runs with a similar goal" placeholder="A goal, such as: deploy the shop" value=${goal} onChange=${(text) => go({ goal: text })} />
      ${!goal && html`<${Choice} label="Which traces" value=${archived ? "yes" : ""} options=${[["", "Current"], ["yes", "Archived"]]} onChange=${(value) => go({ archived: value })} />`}</div>
    <div><${Loaded} of=${load}>${(data) => html`
      ${data.faults?.length > 0 && html`<${ProblemBox} problem=${{ what: `${plural(data.faults.length, "section")} of the files cannot be read.`, remedy: data.faults.map((one) => `${one.file}:${one.line}: ${one.what}`).join("\n") }} />`}
      <${Card} title=${goal ? "Similar runs" : archived ? "Archived runs" : "Runs"} note=${data.count}>
        ${!data.count && html`<${Empty}>${goal ? "No earlier run had a similar goal." : archived ? "Nothing is archived yet." : html`No run was recorded yet. Try <code>memory-mesh trace record --goal "Say hello" -- echo hello</code>.`}</${Empty}>`}
        <ul class="items">${data.results.map((one) => html`<${Run} key=${one.trace_id} run=${one} />`)}</ul>
        ${!goal && data.results.length === limit && html`<${Button} onClick=${() => setLimit(limit + MORE)}>Show more</${Button}>`}
      </${Card}>`}</${Loaded}></div>
    ${!goal && html`<${Learnings} />`}`;
}

const Run = ({ run }) => html`<li><div class="row spread"><a class="memory-link" data-item href=${address(`/traces/${encodeURIComponent(run.trace_id)}`)}><bdi class="clamp">${visible(run.goal)}</bdi></a>${mark(run.status || (run.success ? "success" : "failure"))}</div>
  <p class="meta">${run.timestamp && html`<${When} at=${run.timestamp} />`}${run.duration_ms != null && html`<span>${duration(run.duration_ms)}</span>`}
    ${run.steps && html`<span>${plural(run.steps.length, "step")}</span>`}${run.similarity != null && html`<span class="number">similarity ${run.similarity.toFixed(2)}</span>`}
    ${run.tools_used?.length > 0 && html`<span>with <bdi>${visible(run.tools_used.join(", "))}</bdi></span>`}</p>
  ${run.suggested_approach && html`<div class="quote"><${Text} limit=${400}>${run.suggested_approach}</${Text}></div>`}</li>`;

/** What was learnt from groups of runs. They are memories, so every token that sees the page may read them. */
function Learnings() {
  const load = useLoad(() => read("list", { filter: "metadata.learning_id IS NOT NULL AND category = 'insight'", limit: 50 }), []);
  const draw = async () => {
    const done = await write("trace consolidate");
    say(done.written.length ? `${plural(done.written.length, "learning")} written.` : "There is nothing new to learn from these runs.");
    load.again();
  };
  return html`<${Card} title="Learnings" note="what runs with similar goals have in common">
    <div><${Loaded} of=${load}>${({ results }) => (results.length ? html`<ul class="items">${results.map((one) => html`<li><details><summary data-item><bdi class="clamp">${visible(one.content.split("\n", 1)[0].replace(/^# Learning: /, ""))}</bdi></summary>
        <div class="inside"><${Text} limit=${1500}>${one.content.split("\n").slice(1).join("\n").trim()}</${Text}><p><${MemoryLink} id=${one.id} title="Open the memory" /></p></div></details></li>`)}</ul>`
      : html`<${Empty}>Two runs with a similar goal are needed before something is learnt from them.</${Empty}>`)}</${Loaded}></div>
    <div class="actions"><${Button} writes onClick=${draw}>Learn from the runs now</${Button}></div>
  </${Card}>`;
}

function Trace({ id }) {
  const load = useLoad(() => read("trace show", { trace_id: id }), [id]);
  const keep = async () => {
    const done = await write("trace decisions", { trace_id: id });
    say(`${plural(done.count, "decision")} stored as memories.`);
  };
  return html`<p><a href="#/traces">← All traces</a></p>${!load.data && html`<${Title}>Trace</${Title}>`}<${Loaded} of=${load}>${(trace) => {
    const decisions = trace.learnings.filter((one) => one.startsWith("Decision: "));
    const learnt = trace.learnings.filter((one) => !one.startsWith("Decision: "));
    return html`<${Title} note=${html`${mark(trace.status)} <${When} at=${trace.timestamp} exact /> · ${duration(trace.duration_ms)}`}><bdi>${cut(trace.goal, 200)}</bdi></${Title}>
      <${Card} title="Steps" note=${trace.steps.length}>${trace.steps.length ? html`<ol class="steps">${trace.steps.map((step) => html`<li><${Text} limit=${800}>${step.text}</${Text}>${step.status && step.status !== "done" && html`<${Tag} kind=${/^(fail|error)/i.test(step.status) ? "bad" : ""}>${step.status}</${Tag}>`}</li>`)}</ol>`
        : html`<${Empty}>No step was recorded.</${Empty}>`}</${Card}>
      ${learnt.length > 0 && html`<${Card} title="What was learnt"><ul class="bullets">${learnt.map((one) => html`<li><${Text} limit=${800}>${one}</${Text}></li>`)}</ul></${Card}>`}
      ${decisions.length > 0 && html`<${Card} title="Decisions"><ul class="bullets">${decisions.map((one) => html`<li><${Text} limit=${800}>${one.slice(10)}</${Text}></li>`)}</ul>
        <div class="actions"><${Button} writes class="small" onClick=${keep}>Keep them as memories</${Button}></div></${Card}>`}
      <${Card} title="More"><${Pairs} of=${[["Plan", trace.plan], ["Results", trace.results], ["Tools", trace.tools_used.join(", ")], ["Files", trace.files_created.join("\n")], ["Recovered", trace.recovered && "It needed a second attempt."], ["Id", html`<code>${trace.trace_id}</code>`]]} /></${Card}>`;
  }}</${Loaded}>`;
}

const duration = (ms) => (ms < 1000 ? `${ms} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`);
