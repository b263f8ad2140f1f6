// Time: what happened until a moment, and what the memory contained then: what was true, or what was known.
import { page } from "../api.js";
import { Card, Choice, Dated, Field, Loaded, MemoryLink, Status, Tag, Title, count, html, navigate, percent, plural, useEffect, useLoad, useRef, useState } from "../ui.js";
import { NoMemories } from "../users.js";
import "./parts.js"; // for its stylesheet

const DAY = 86_400_000;
const KINDS = { happened: "What happened", known_at: "What was known", as_of: "What was true" };
const SAYS = {
  happened: ["", "Memories until this day, the latest first: by when they happened, or else when they were stored."],
  known_at: ["known", "What was stored and believed at this time, without what was learnt later. The bars are the days of storing."],
  as_of: ["true", "Statements that were true at this time, as far as is known today. The bars are the days of storing."],
};
const ALL = "9999-12-31"; // with what is planned
const iso = (time) => new Date(time).toISOString();
const dayOf = (time) => iso(time).slice(0, 10);

export default function Time({ route }) {
  const kind = Object.keys(KINDS).find((name) => route.args.has(name)) || "happened";
  const chosen = route.args.get(kind) || "";
  const [limit, setLimit] = useState(50);
  const load = useLoad(() => page("timeline", { [kind]: chosen || (kind === "happened" ? ALL : ""), limit }), [kind, chosen, limit]);
  const go = (name, time) => navigate("/time", name === "happened" ? { happened: time } : { [name]: time || iso(Date.now()) }, { replace: true });
  return html`<${Title} note="Move the slider to see the memory as it was.">Time</${Title}>
    <${Loaded} of=${load}>${(data) => html`<${Slider} data=${data} kind=${kind} chosen=${chosen} go=${go} />
      <${Card} title=${!chosen ? "All" : kind === "happened" ? `Until ${dayOf(chosen)}` : `On ${dayOf(chosen)}`} note=${`${plural(data.count, "memory", "memories")} ${SAYS[kind][0]}${chosen ? " by then" : ""}`} aria-live="polite" aria-busy=${load.busy}>
        ${!data.results.length && html`<${NoMemories}>${chosen ? "Nothing by then. Move the slider to the right." : "No memory is active."}</${NoMemories}>`}
        <ul class="items">${data.results.map((one) => html`<${Line} key=${one.id} one=${one} />`)}</ul>
        ${data.results.length === limit && html`<button class="button" type="button" onClick=${() => setLimit(limit + 100)}>Show more</button>`}
      </${Card}>`}</${Loaded}>`;
}

const Line = ({ one }) => html`<li><${MemoryLink} data-item id=${one.id} title=${one.title} />
  <p class="meta"><${Tag}>${one.kind}</${Tag}><${Status} of=${one.status} />${one.trust != null && html`<span>trust ${percent(one.trust)}</span>`}<${Dated} memory=${one} exact />
    ${(one.valid_from || one.valid_until) && html`<span>true ${one.valid_from && html`from ${dayOf(one.valid_from)}`} ${one.valid_until && html`until ${dayOf(one.valid_until)}`}</span>`}</p></li>`;

/** The days as bars, and a slider over them. The value is the end of a day, so that what was stored on it is shown. */
function Slider({ data, kind, chosen, go }) {
  const first = Date.parse(`${dayOf(data.first || Date.now())}T00:00:00Z`);
  const now = Math.floor((Date.now() - first) / DAY);
  const last = kind === "happened" && data.last ? Math.floor((Date.parse(data.last) - first) / DAY) : 0;
  const days = Math.max(1, now + 1, last + 1);
  const lastDay = last > now ? dayOf(first + last * DAY) : "now";
  const at = chosen ? Math.min(days - 1, Math.max(0, Math.floor((Date.parse(chosen) - first) / DAY))) : days - 1;
  const [value, setValue] = useState(at);
  const timer = useRef();
  useEffect(() => setValue(at), [at]);
  const end = (index) => (index >= days - 1 ? "" : `${dayOf(first + index * DAY)}T23:59:59.999Z`);
  const move = (index) => {
    setValue(index);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go(kind, end(index)), 200);
  };
  const shown = value >= days - 1 ? lastDay : dayOf(first + value * DAY);
  const choose = (next) => {
    clearTimeout(timer.current); // of a move that would choose the kind before
    go(next, chosen && Date.parse(chosen) < Date.now() ? chosen : "");
  };
  return html`<${Card}>
    <div class="row spread"><${Choice} label="What the time means" value=${kind} options=${Object.entries(KINDS)} onChange=${choose} />
      <${Field} label="Day"><input type="date" value=${dayOf(first + value * DAY)} min=${dayOf(first)} max=${dayOf(first + (days - 1) * DAY)} onChange=${(event) => event.target.value && move(Math.round((Date.parse(event.target.value) - first) / DAY))} /></${Field}></div>
    <${Bars} kind=${kind} days=${data.days} step=${data.step_days} first=${first} total=${days} value=${value} />
    <input class="slider" type="range" aria-label=${KINDS[kind]} aria-valuetext=${shown} min="0" max=${days - 1} value=${value} onInput=${(event) => move(Number(event.target.value))} />
    <div class="row spread faint"><span>${dayOf(first)}</span><strong>${shown}</strong><span>${lastDay}</span></div>
    <p class="faint">${SAYS[kind][1]}</p>
  </${Card}>`;
}

/** How many memories there are of each step of days, as an SVG that follows the colours of the page. */
function Bars({ kind, days, step, first, total, value }) {
  const most = Math.max(1, ...days.map(([, number]) => number));
  const width = 100 / Math.ceil(total / step);
  return html`<svg class="day-bars" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label=${`Memories by the day ${kind === "happened" ? "of what happened" : "they were stored"}: at most ${count(most)} in ${step === 1 ? "a day" : `${step} days`}`}>
    ${days.map(([day, number]) => {
      const at = Math.floor((Date.parse(day) - first) / DAY);
      return html`<rect class=${at <= value ? "past" : ""} x=${(at / step) * width} y=${30 - (number / most) * 30} width=${width * 0.8} height=${(number / most) * 30} />`;
    })}</svg>`;
}
