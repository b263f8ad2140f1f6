// Lessons: the rules that agents follow, how sure they are, and the failures that they came from.
import { read, write } from "../api.js";
import { Bar, Button, Card, Empty, Loaded, MemoryLink, Status, Tag, Text, Title, When, html, navigate, plural, say, useLoad, useState, visible } from "../ui.js";
import { Filter, Pairs, Rate, cut } from "./parts.js";

const SEVERITY = { critical: "bad", high: "warn", medium: "info", low: "" };
const MORE = 50;

export default function Lessons({ route }) {
  const query = route.args.get("query") || "";
  const [limit, setLimit] = useState(MORE);
  const load = useLoad(() => read("lessons", { query, limit }), [query, limit]);
  const find = (text) => navigate("/lessons", { query: text }, { replace: true });
  return html`<${Title} note="A lesson is a rule that came from a failure. Agents get the rules that fit their task.">Lessons</${Title}>
    <${Filter} label="Find lessons" placeholder="A task, such as: deploy the shop" value=${query} onChange=${find} />
    <${Loaded} of=${load}>${({ results }) => html`
      ${!results.length && html`<${Card} class="card-empty"><${Empty}>${query ? "No lesson is relevant to this task." : html`No lesson was learnt yet. Record a failure with <code>memory-mesh distill --pattern …</code>, or let the maintenance jobs (heartbeat) make lessons of recorded errors.`}</${Empty}></${Card}>`}
      ${results.map((lesson) => html`<${Lesson} key=${lesson.memory_id} lesson=${lesson} />`)}
      ${results.length === limit && html`<${Button} onClick=${() => setLimit(limit + MORE)}>Show more</${Button}>`}`}</${Loaded}>`;
}

function Lesson({ lesson }) {
  const [open, setOpen] = useState(false);
  const makeSkill = async () => {
    const skill = await write("lesson-to-skill", { lesson_id: lesson.lesson_id });
    say(`Stored as the skill ${cut(skill.name)}.`);
  };
  return html`<${Card} class="lesson">
    <div class="row spread"><div class="row"><${Tag} kind=${SEVERITY[lesson.severity]}>${lesson.severity}</${Tag}><span class="faint">applies to <bdi>${visible(lesson.applicable_scope)}</bdi></span></div>
      ${lesson.score != null && html`<span class="faint number">relevance ${lesson.score.toFixed(2)}</span>`}</div>
    <div class="rule"><${Text} limit=${600}>${lesson.preventative_rule}</${Text}></div>
    <${Bar} label="Confidence in the rule" value=${lesson.rule_confidence} />
    <details onToggle=${(event) => setOpen(event.target.open)}><summary data-item>Where it came from, and what agents think of it</summary>
      ${open && html`<${Origin} lesson=${lesson} />`}</details>
    <div class="actions"><${Button} writes class="small" aria-label=${`Make a skill of it: ${cut(lesson.preventative_rule)}`} onClick=${makeSkill}>Make a skill of it</${Button}></div>
  </${Card}>`;
}

/** What the lesson came from: its failure, its sources, and how it was rated since. */
function Origin({ lesson }) {
  const load = useLoad(async () => {
    const memory = await read("get", { id: lesson.memory_id });
    const sources = await Promise.all(memory.sources.map((id) => read("get", { id }).catch(() => ({ id }))));
    return { memory, sources };
  }, [lesson.memory_id]);
  return html`<div class="inside"><${Loaded} of=${load}>${({ memory, sources }) => {
    const from = memory.metadata;
    return html`<${Pairs} of=${[["Situation", from.situation], ["What was missed", from.oversight], ["How it was fixed", from.fix],
      ["What succeeds instead", from.inverse_lesson !== "none" && from.inverse_lesson], ["Error pattern", from.error_pattern],
      ["Came from", sources.length ? html`<ul class="plain">${sources.map((one) => html`<li><${MemoryLink} id=${one.id} title=${one.content} /></li>`)}</ul>` : "It was given by hand."],
      ["Learnt", html`<${When} at=${memory.created_at} /> by <bdi>${visible(memory.agent_id || "an unknown agent")}</bdi>`],
      ["Status", html`<${Status} of=${memory.status} />`],
      ["Feedback", memory.feedback_count ? `Rank × ${memory.feedback_score.toFixed(2)} after ${plural(memory.feedback_count, "rating")}` : "Not rated yet"],
    ]} />
    <div class="actions"><${Rate} id=${memory.id} what=${cut(lesson.preventative_rule)} onDone=${load.again} />
      <a class="button small" href=${`#/memory/${encodeURIComponent(memory.id)}`}>Open the memory</a></div>`;
  }}</${Loaded}></div>`;
}
