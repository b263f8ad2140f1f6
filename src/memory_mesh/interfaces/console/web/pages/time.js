// Time: how the memory grew, and what it contained at a moment: what was true then, or what was known then.
import { page } from "../api.js";
import { Card, Choice, Field, Loaded, MemoryLink, Status, Tag, Title, When, count, html, navigate, percent, plural, useEffect, useLoad, useRef, useState } from "../ui.js";
import "./parts.js"; // for its stylesheet

const DAY = 86_400_000;
const KINDS = { known_at: "What was known", as_of: "What was true" };
const iso = (time) => new Date(time).toISOString();
const dayOf = (time) => iso(time).slice(0, 10);

export default function Time({ route }) {
  const kind = route.args.get("as_of") ? "as_of" : "known_at";
  const chosen = route.args.get(kind) || "";
  const [limit, setLimit] = useState(50);
  const load = useLoad(() => page("timeline", { [kind]: chosen, limit }), [kind, chosen, limit]);
  const go = (args) => navigate("/time", args, { replace: true });
  return html`<${Title} note="Move the slider to see the memory as it was.">Time</${Title}>
    <${Loaded} of=${load}>${(data) => html`<${Slider} data=${data} kind=${kind} chosen=${chosen} go=${go} />
      <${Card} title=${chosen ? `On ${dayOf(chosen)}` : "Now"} note=${`${plural(data.count, "memory", "memories")} ${kind === "as_of" ? "true" : "known"}${chosen ? " then" : ""}`} aria-live="polite" aria-busy=${load.busy}>
        ${!data.results.length && html`<p class="empty">${chosen ? "Nothing was stored by then. Move the slider to the right." : "The memory is empty. Store something, and it appears here."}</p>`}
        <ul class="items">${data.results.map((one) => html`<${Line} key=${one.id} one=${one} />`)}</ul>
        ${data.results.length === limit && html`<button class="button" type="button" onClick=${() => setLimit(limit + 100)}>Show more</button>`}
      </${Card}>`}</${Loaded}>`;
}

const Line = ({ one }) => html`<li><${MemoryLink} data-item id=${one.id} title=${one.title} />
  <p class="meta"><${Tag}>${one.kind}</${Tag}><${Status} of=${one.status} />${one.trust != null && html`<span>trust ${percent(one.trust)}</span>`}<span>stored <${When} at=${one.created_at} exact /></span>
    ${(one.valid_from || one.valid_until) && html`<span>true ${one.valid_from && html`from ${dayOf(one.valid_from)}`} ${one.valid_until && html`until ${dayOf(one.valid_until)}`}</span>`}</p></li>`;

/** The days as bars, and a slider over them. The value is the end of a day, so that what was stored on it is shown. */
function Slider({ data, kind, chosen, go }) {
  const first = Date.parse(`${dayOf(data.first || Date.now())}T00:00:00Z`);
  const days = Math.max(1, Math.floor((Date.now() - first) / DAY) + 1);
  const at = chosen ? Math.min(days - 1, Math.max(0, Math.floor((Date.parse(chosen) - first) / DAY))) : days - 1;
  const [value, setValue] = useState(at);
  const timer = useRef();
  useEffect(() => setValue(at), [at]);
  const end = (index) => (index >= days - 1 ? "" : `${dayOf(first + index * DAY)}T23:59:59.999Z`);
  const move = (index) => {
    setValue(index);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go({ [kind]: end(index) }), 200);
  };
  const shown = value >= days - 1 ? "now" : dayOf(first + value * DAY);
  // "What was true" needs a time of its own: without one, both say what holds now.
  const choose = (next) => {
    clearTimeout(timer.current); // of a move that would choose the kind before
    go({ [next]: chosen || (next === "as_of" ? iso(Date.now()) : "") });
  };
  return html`<${Card}>
    <div class="row spread"><${Choice} label="What the time means" value=${kind} options=${Object.entries(KINDS)} onChange=${choose} />
      <${Field} label="Day"><input type="date" value=${dayOf(first + value * DAY)} min=${dayOf(first)} max=${dayOf(Date.now())} onChange=${(event) => event.target.value && move(Math.round((Date.parse(event.target.value) - first) / DAY))} /></${Field}></div>
    <${Bars} days=${data.days} step=${data.step_days} first=${first} total=${days} value=${value} />
    <input class="slider" type="range" aria-label=${KINDS[kind]} aria-valuetext=${shown} min="0" max=${days - 1} value=${value} onInput=${(event) => move(Number(event.target.value))} />
    <div class="row spread faint"><span>${dayOf(first)}</span><strong>${shown}</strong><span>now</span></div>
    <p class="faint">${kind === "as_of" ? "Statements that were true at this time, as far as is known today." : "What was stored and believed at this time, without what was learnt later."}</p>
  </${Card}>`;
}

/** How many memories were stored in each step of days, as an SVG that follows the colours of the page. */
function Bars({ days, step, first, total, value }) {
  const most = Math.max(1, ...days.map(([, number]) => number));
  const width = 100 / Math.ceil(total / step);
  return html`<svg class="day-bars" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label=${`Memories by the day they were stored: at most ${count(most)} in ${step === 1 ? "a day" : `${step} days`}`}>
    ${days.map(([day, number]) => {
      const at = Math.floor((Date.parse(day) - first) / DAY);
      return html`<rect class=${at <= value ? "past" : ""} x=${(at / step) * width} y=${30 - (number / most) * 30} width=${width * 0.8} height=${(number / most) * 30} />`;
    })}</svg>`;
}
