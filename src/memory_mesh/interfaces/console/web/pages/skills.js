// Skills: what agents know how to do, how reliable it was, and its text.
import { read, write } from "../api.js";
import { Bar, Button, Card, Empty, Loaded, MemoryLink, Tag, Text, Title, When, html, navigate, plural, say, useLoad, useState, visible } from "../ui.js";
import { Erase, Filter, Pairs, cut } from "./parts.js";

const MORE = 50;
const WEAK = 0.3; // `skill-prune` archives skills below it

export default function Skills({ route }) {
  const query = route.args.get("query") || "";
  const [limit, setLimit] = useState(MORE);
  const load = useLoad(() => (query ? read("search-skills", { query, limit }) : read("list-skills", { limit })), [query, limit]);
  const find = (text) => navigate("/skills", { query: text }, { replace: true });
  return html`<${Title} note="A skill tells an agent how to do something. Reliability rises by 0.1 with each success and falls by 0.2 with each failure.">Skills</${Title}>
    <${Filter} label="Find skills" placeholder="A task, such as: deploy the site" value=${query} onChange=${find} />
    <${Loaded} of=${load}>${({ results }) => html`
      ${!results.length && html`<${Card} class="card-empty"><${Empty}>${query ? "No skill fits this task." : html`There are no skills yet. Store one with <code>memory-mesh ingest-skill</code>, or set folders of skills in <code>skill_directories</code>.`}</${Empty}></${Card}>`}
      ${results.map((skill) => html`<${Skill} key=${skill.id} skill=${skill} again=${load.again} />`)}
      ${results.length === limit && html`<${Button} onClick=${() => setLimit(limit + MORE)}>Show more</${Button}>`}`}</${Loaded}>`;
}

function Skill({ skill, again }) {
  const used = (success) => async () => {
    const done = await write("skill-feedback", { id: skill.id, success });
    say(`Reliability ${done.previous.toFixed(2)} → ${done.reliability.toFixed(2)}.`);
    again();
  };
  return html`<${Card} class="skill">
    <div class="row spread"><h2><bdi>${visible(skill.name)}</bdi></h2>
      <span class="row">${(skill.tags || []).map((tag) => html`<${Tag}>${tag}</${Tag}>`)}${skill.score != null && html`<span class="faint number">score ${skill.score.toFixed(2)}</span>`}</span></div>
    <${Text} limit=${600}>${skill.intent}</${Text}>
    <${Bar} label="Reliability" value=${skill.reliability} kind=${skill.reliability < WEAK ? "bad" : ""} text=${skill.reliability.toFixed(2)} />
    <p class="meta"><span>Used ${plural(skill.use_count, "time")}</span>${skill.last_used && html`<span>last <${When} at=${skill.last_used} /></span>`}<span>revision ${skill.revision}</span>
      ${skill.reliability < WEAK && html`<span>Below ${WEAK}: pruning would archive it</span>`}</p>
    <details><summary data-item>Text and origin</summary><div class="inside">
      <pre class="skill-text" tabindex="0" aria-label=${`Text of ${cut(skill.name)}`}><${Text}>${skill.yamo_text}</${Text}></pre>
      <${Pairs} of=${[["Description", skill.description], ["File", skill.source_file_path], ["Stored", html`<${When} at=${skill.created_at} /> by <bdi>${visible(skill.agent_id || "an unknown agent")}</bdi>`],
        ["Made from", skill.sources?.length > 0 && html`<ul class="plain">${skill.sources.map((id) => html`<li><${MemoryLink} id=${id} /></li>`)}</ul>`]]} />
      <div class="actions"><${Erase} id=${skill.id} what=${skill.yamo_text} onDone=${again} /></div>
    </div></details>
    <div class="actions"><${Button} writes class="small" aria-label=${`It worked: ${cut(skill.name)}`} onClick=${used(true)}>It worked</${Button}>
      <${Button} writes class="small" aria-label=${`It failed: ${cut(skill.name)}`} onClick=${used(false)}>It failed</${Button}></div>
  </${Card}>`;
}
