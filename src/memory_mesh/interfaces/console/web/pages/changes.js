// What changed: the statements about one subject through time, each with what replaced or ended it. The page of a memory shows its own.
import { read, write } from "../api.js";
import { Button, Card, Loaded, MemoryLink, Tag, Title, dateOf, day, html, navigate, percent, plural, say, useLoad } from "../ui.js";
import { NoMemories } from "../users.js";
import { Filter } from "./parts.js";

const MEANS = { updates: "replaced", ends: "ended", both_hold: "holds beside the next" };

export default function Changes({ route }) {
  const about = route.args.get("about") || "";
  const load = useLoad(() => read("changes", { about, limit: 100 }), [about]);
  return html`<${Title} note="What newer memories replaced or ended, through time.">Changes</${Title}>
    <${Filter} label="A subject, such as: where do I live" value=${about} onChange=${(next) => navigate("/changes", { about: next }, { replace: true })} />
    <${Loaded} of=${load}>${({ results }) => html`${!results.length && html`<${Card}><${NoMemories}>${about ? "No change of this is known." : "No change is known yet. They are found in the background, or you name one: memory-mesh changes --confirm NEWER OLDER"}</${NoMemories}></${Card}>`}
      ${linesOf(results).map((line) => html`<${Card} key=${line[0].newer.id} title=${line.length > 1 ? plural(line.length, "change") : undefined}><${Timeline} changes=${line} again=${load.again} /></${Card}>`)}`}</${Loaded}>`;
}

/** The changes that are connected, as one line each. */
function linesOf(changes) {
  let lines = [];
  for (const change of changes) {
    const ids = new Set([change.newer.id, change.older.id]);
    const joined = lines.filter((line) => line.some((one) => ids.has(one.newer.id) || ids.has(one.older.id)));
    lines = [...lines.filter((line) => !joined.includes(line)), [...joined.flat(), change]];
  }
  return lines;
}

/** The statements of one line, the latest first, with the time in which each held and what a person may say of its changes. */
export function Timeline({ changes, again }) {
  const decide = (verb, change, text) => async () => {
    await write(verb, { newer: change.newer.id, older: change.older.id });
    say(text);
    again();
  };
  const statements = new Map(changes.flatMap((one) => [[one.newer.id, one.newer], [one.older.id, one.older]]));
  const replaces = (one, other) => changes.some(({ newer, older }) => newer.id === one.id && older.id === other.id);
  const latestFirst = [...statements.values()].sort((one, other) => (replaces(one, other) ? -1 : replaces(other, one) ? 1 : dateOf(other).localeCompare(dateOf(one))));
  return html`<ol class="timeline">${latestFirst.map((memory) => {
    const endings = changes.filter((change) => change.older.id === memory.id);
    const end = endings.find((change) => change.type !== "both_hold");
    return html`<li key=${memory.id} class=${end ? "" : "holds"}><${MemoryLink} data-item id=${memory.id} title=${memory.content} />
      <div class="meta"><span>since ${day(dateOf(memory))}</span>${end ? html`<span>until ${day(end.at)}</span>` : html`<${Tag} kind="good">holds now</${Tag}>`}</div>
      ${endings.map((change) => html`<div class="row" key=${change.newer.id}><span class="meta"><span>${MEANS[change.type]}</span><${Tag} kind=${change.probability === 1 ? "good" : ""}>${change.type === "both_hold" ? "undone" : change.probability === 1 ? "confirmed" : `${percent(change.probability)} likely`}</${Tag}></span>
        ${(change.type === "both_hold" || change.probability !== 1) && html`<${Button} writes class="small" onClick=${decide("confirm-change", change, "Confirmed: the newer one stands above.")}>Confirm</${Button}>`}
        ${change.type !== "both_hold" && html`<${Button} writes class="small" onClick=${decide("undo-change", change, "Undone: both hold.")}>Undo</${Button}>`}</div>`)}</li>`;
  })}</ol>`;
}
