// Junk: memories that should not be in a memory, and why.
import { read, write } from "../api.js";
import { Button, Card, Confirm, Loaded, Tag, Text, Title, count, html, plural, say, useLoad, useState } from "../ui.js";
import { NoMemories } from "../users.js";
import { Erase, cut } from "./parts.js";

const LIMIT = 200;
const NEWEST = 250; // memories that are judged first, so that the page opens soon in a large store

export default function Junk() {
  const [newest, setNewest] = useState(NEWEST);
  const load = useLoad(() => read("junk-list", { limit: LIMIT, newest }), [newest]);
  const [only, setOnly] = useState("");
  return html`<${Title} note="Output of programs, small talk, questions, secrets, instructions for a model, and repetitions, among the newest memories. Of a long memory, the first 20,000 characters are judged.">Junk</${Title}>
    <${Loaded} of=${load}>${({ results }) => {
      const reasons = [...new Set(results.map((one) => one.why))].sort();
      const shown = results.filter((one) => !only || one.why === only);
      const more = html`<p class="after row"><span class="faint">The newest ${count(newest)} memories were judged; <code>memory-mesh junk</code> judges all.</span>
        <${Button} disabled=${load.busy} onClick=${() => setNewest(newest * 4)}>Judge ${count(newest * 4)}</${Button}></p>`;
      if (!results.length) return html`<${Card} class="card-empty"><${NoMemories}>Every memory looks worth keeping.</${NoMemories}>${more}</${Card}>`;
      return html`<div class="row spread controls">
          <label class="row"><span>Show</span><select value=${only} onChange=${(event) => setOnly(event.target.value)}>
            <option value="">all reasons (${results.length}${results.length === LIMIT ? " or more" : ""})</option>
            ${reasons.map((why) => html`<option value=${why}>${why} (${results.filter((one) => one.why === why).length})</option>`)}</select></label>
          <${ArchiveAll} results=${results} newest=${newest} again=${load.again} /></div>
        <ul class="cards-list">${shown.map((one) => html`<li key=${one.id}><${Item} one=${one} again=${load.again} /></li>`)}</ul>${more}`;
    }}</${Loaded}>`;
}

const Item = ({ one, again }) => html`<${Card} class="junk">
  <div class="row"><${Tag} kind=${/secret|instruction/.test(one.why) ? "bad" : "warn"}>${one.why}</${Tag}></div>
  <${Text} limit=${500}>${one.content}</${Text}>
  <div class="actions"><a class="button small" data-item href=${`#/memory/${encodeURIComponent(one.id)}`} aria-label=${`Open: ${cut(one.content)}`}>Open</a>
    <${Erase} id=${one.id} what=${one.content} onDone=${again} /></div>
</${Card}>`;

/** Archive all that was found. It is the gentle way: an archived memory can be brought back. */
function ArchiveAll({ results, newest, again }) {
  const [open, setOpen] = useState(false);
  const archive = async () => {
    const done = await write("junk", { archive: true, limit: results.length, newest });
    const ids = done.results.filter((one) => one.archived).map((one) => one.id);
    setOpen(false);
    const undo = async () => {
      for (const memory_id of ids) await write("unarchive", { memory_id });
      again();
    };
    say(`Archived ${plural(ids.length, "memory", "memories")}.`, { undo });
    again();
  };
  return html`<${Button} writes onClick=${() => setOpen(true)}>Archive all …</${Button}>
    ${open && html`<${Confirm} title=${`Archive ${plural(results.length, "memory", "memories")}?`} action="Archive all" onYes=${archive} onNo=${() => setOpen(false)}>
      <p>They are no longer found by searches. Each stays with its history, and can be made active again.</p></${Confirm}>`}`;
}
