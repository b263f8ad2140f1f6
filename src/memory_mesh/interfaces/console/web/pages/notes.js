// Notes: the sections of the Markdown files, when they are used, and which of them a task gets.
import { read, write } from "../api.js";
import { Bar, Button, Card, Empty, Loaded, Tag, Text, Title, When, html, navigate, plural, say, useLoad, useMemo, visible } from "../ui.js";
import { Filter, Pairs, Rate, cut } from "./parts.js";

const IMPORTANCE = { critical: "bad", high: "warn", medium: "info", low: "" };

export default function Notes({ route }) {
  const task = route.args.get("task") || "";
  const load = useLoad(() => (task ? read("notes match", { task }) : read("notes list")), [task]);
  const faults = useLoad(() => read("notes lint"), []);
  const kept = useLoad(() => read("list", { filter: "category = 'note'", limit: 500 }), []);
  const ids = useMemo(() => new Map((kept.data?.results || []).map((one) => [`${one.metadata.file}#${one.metadata.section ?? 0}`, one])), [kept.data]);
  const find = (text) => navigate("/notes", { task: text }, { replace: true });
  const sync = async () => {
    const done = await write("notes sync");
    say(`Read the folder: ${done.added} added, ${done.updated} updated, ${done.archived} archived.`);
    [load, faults, kept].forEach((one) => one.again());
  };
  return html`<${Title} note="A note is a section of a Markdown file that an agent gets when its task matches." actions=${html`<${Button} writes onClick=${sync}>Read the folder again</${Button}>`}>Notes</${Title}>
    <${Filter} label="Which notes does a task get?" placeholder="A task, such as: add a login page" value=${task} onChange=${find} />
    ${faults.data?.results.length > 0 && html`<${Faults} list=${faults.data.results} />`}
    <${Loaded} of=${load}>${({ results }) => html`
      ${!results.length && html`<${Card} class="card-empty"><${Empty}>${task ? "No note matches this task." : html`There are no notes yet. Write Markdown files into the folder <code>notes_dir</code>, or run <code>memory-mesh notes add</code>.`}</${Empty}></${Card}>`}
      ${results.map((one) => html`<${Note} note=${one.note || one} match=${one.note && one} memory=${ids.get(`${(one.note || one).file}#${(one.note || one).section}`)} again=${kept.again} />`)}`}</${Loaded}>`;
}

const Faults = ({ list }) => html`<${Card} title=${plural(list.length, "thing")} note="is wrong in the files; the other sections are used"><ul class="items">
  ${list.map((one) => html`<li><${Tag} kind=${one.warning ? "warn" : "bad"}>${one.warning ? "warning" : "fault"}</${Tag}> <code>${one.file}${one.line ? `:${one.line}` : ""}</code> <bdi>${visible(one.what)}</bdi></li>`)}</ul></${Card}>`;

function Note({ note, match, memory, again }) {
  const parts = match ? ["importance", "recency", "keyword", "specialty", "discoverer"].filter((name) => match[name]) : [];
  return html`<${Card} class="note">
    <div class="row spread"><h2><bdi>${visible(note.title)}</bdi></h2><span class="row"><${Tag} kind=${IMPORTANCE[note.importance]}>${note.importance}</${Tag}>
      ${note.deprecated && html`<${Tag} kind="warn">deprecated</${Tag}>`}${note.tags.map((tag) => html`<${Tag}>${tag}</${Tag}>`)}</span></div>
    <${Text} limit=${800}>${note.content}</${Text}>
    ${match && html`<div class="why"><p>Matched by <code>${match.pattern}</code>: ${match.rank} points${match.feedback !== 1 && `, with feedback × ${match.feedback}`}</p>
      ${parts.map((name) => html`<${Bar} label=${name} value=${match[name] / 30} text=${match[name]} />`)}</div>`}
    <details><summary data-item>When it is used, and where it stands</summary><div class="inside"><${Pairs} of=${[
      ["Used for", note.when_to_use.length > 0 && html`<span class="row">${note.when_to_use.map((one) => html`<code>${one}</code>`)}</span>`],
      ["File", `${note.file}, line ${note.line}`], ["Discovered", html`<${When} at=${note.discovered_at} /> by <bdi>${visible(note.discovered_by || "an unknown agent")}</bdi>`],
      ["Valid from", note.valid_from], ["Valid until", note.valid_until],
      ["Feedback", memory && (memory.feedback_count ? `Rank × ${memory.feedback_score.toFixed(2)} after ${plural(memory.feedback_count, "rating")}` : "Not rated yet")]]} />
      ${memory && html`<div class="actions"><${Rate} id=${memory.id} what=${cut(note.title)} onDone=${again} /><a class="button small" href=${`#/memory/${encodeURIComponent(memory.id)}`}>Open the memory</a></div>`}
    </div></details>
  </${Card}>`;
}
