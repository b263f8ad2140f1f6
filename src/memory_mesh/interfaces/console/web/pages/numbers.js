// Numbers: how the memory grows, what it consists of, how fast it answers and what models cost. Each plot has a sentence and a table.
import { page } from "../api.js";
import { Card, Empty, Loaded, Table, Title, count, html, plural, useEffect, useLoad, useMemo, useRef, visible } from "../ui.js";
import { NoMemories } from "../users.js";
import { stylesheet, useColours } from "./parts.js";

let uPlot;
const library = Promise.all([import("../vendor/uplot.js"), stylesheet("../vendor/uplot.css")]); // they load while the server counts
library.then(([loaded]) => { uPlot = loaded.default; }, () => {}); // without it the tables below the plots have the same

export default function Numbers() {
  const load = useLoad(() => page("numbers"), []);
  return html`<${Title} note="What you can see of the memory, counted.">Numbers</${Title}>
    <${Loaded} of=${load}>${(data) => html`<div class="plots"><${Growth} days=${data.by_day} step=${data.step_days} />${data.total > 0 && html`<${Words} title="Kinds" of=${data.kinds} says=${saysMost("record", "records", "kind", "kinds")} />
      <${Words} title="Status" of=${data.status} says=${saysMost("memory", "memories", "state", "states")} /><${Trust} buckets=${data.trust} of=${data.trust_of} total=${data.total} />`}<${Latency} of=${data.latency_ms} /><${Spending} of=${data.spending} /></div>`}</${Loaded}>`;
}

const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);
const saysMost = (one, many, kind, kinds) => (entries) => `${plural(sum(entries.map(([, number]) => number)), one, many)} in ${plural(entries.length, kind, kinds)}; the most frequent is ${entries[0][0]} (${count(entries[0][1])}).`;

/** A plot with its sentence, and the same numbers as a table: <${Plot} title says options data rows columns />. */
function Plot({ title, says, data, series, x, y, rows, columns }) {
  const frame = useRef();
  const colours = useColours();
  useEffect(() => {
    const element = frame.current;
    const axis = { stroke: colours.soft, grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line, width: 1 }, font: "12px system-ui, sans-serif" };
    let plot;
    const draw = () => { plot = new uPlot({ width: element.clientWidth, height: 220, cursor: { y: false }, legend: { show: false }, scales: { x: { time: x.time ?? false, ...(x.range && { range: x.range }) }, y: { range: (_, low, high) => [Math.min(0, low), Math.max(1, high * 1.05)] } },
      series: [{}, series(colours)], axes: [{ ...axis, ...x.axis }, { ...axis, size: 56, ...y }] }, data, element); };
    const observer = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height: 220 }));
    observer.observe(element);
    let gone = false;
    library.then(() => gone || draw(), () => {});
    return () => {
      gone = true;
      observer.disconnect();
      plot?.destroy();
    };
  }, [data, colours]);
  return html`<${Card} title=${title}><p>${says}</p><div class="plot" ref=${frame} role="img" aria-label=${`${title}. ${says}`}></div>
    <details><summary data-item>As a table</summary><${Table} label=${`${title} as a table`} rows=${rows} columns=${columns} /></details></${Card}>`;
}

const bars = (colours) => ({ stroke: colours.accent, fill: colours.accent, width: 0, paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } });
const columnsOf = (...titles) => titles.map((title, index) => ({ title, class: index && "number", cell: (row) => (typeof row[index] === "number" ? count(row[index]) : html`<bdi>${visible(row[index])}</bdi>`) }));
const nothing = (title, text) => html`<${Card} title=${title}><${Empty}>${text}</${Empty}></${Card}>`;

/** Names for times of an axis: days, or months and years if it is long. */
const namesOf = (times) => times.map((time) => new Date(time * 1000).toLocaleDateString("en-GB", { ...(times.at(-1) - times[0] > 2e7 ? { year: "numeric" } : { day: "numeric" }), month: "short", timeZone: "UTC" }));

function Growth({ days, step }) {
  const data = useMemo(() => {
    let total = 0;
    const shown = days.length === 1 ? [[new Date(Date.parse(days[0][0]) - 86_400_000), 0], ...days] : days; // a line needs two points
    return [shown.map(([day]) => new Date(day) / 1000), shown.map(([, number]) => (total += number))];
  }, [days]);
  if (!days.length) return nothing("Growth", html`<${NoMemories}>Nothing is stored yet.</${NoMemories}>`);
  const most = days.reduce((one, other) => (other[1] > one[1] ? other : one));
  const line = (colours) => ({ stroke: colours.accent, fill: `${colours.accent}22`, width: 2, points: { show: days.length < 3 } });
  return html`<${Plot} title="Growth" says=${`${plural(data[1].at(-1), "memory", "memories")} since ${days[0][0]}, by the day they happened or else were stored; most ${step === 1 ? "on" : `in the ${step} days from`} ${most[0]} (${count(most[1])}).`} data=${data} series=${line} x=${{ time: true, axis: { space: 70, values: (_, times) => namesOf(times) } }} rows=${[...days].reverse().slice(0, 400)} columns=${columnsOf(step === 1 ? "Day" : `${step} days from`, "Memories")} />`;
}

/** Counts by name as bars. */
function Words({ title, of, says }) {
  const entries = useMemo(() => Object.entries(of).sort((one, other) => other[1] - one[1]), [of]);
  const data = useMemo(() => [entries.map((_, index) => index), entries.map(([, number]) => number)], [entries]);
  if (!entries.length) return null;
  return html`<${Plot} title=${title} says=${says(entries)} data=${data} series=${bars} x=${wordAxis(entries.map(([name]) => name))} rows=${entries} columns=${columnsOf(title, "Memories")} />`;
}

function Trust({ buckets, of, total: all }) {
  const data = useMemo(() => [buckets.map((_, index) => index), buckets], [buckets]);
  const total = sum(buckets);
  if (!total) return nothing("Trust", "No memory has a trust yet. It comes with the source of a memory.");
  const name = (index) => `${index * 10}–${index * 10 + 10} %`;
  const high = sum(buckets.slice(7));
  return html`<${Plot} title="Trust" says=${`${count(high)} of ${plural(total, "memory", "memories")} with a known source have a trust of 70\u00a0% or more${of < all ? `, of the newest ${count(of)} that were counted` : ""}.`} data=${data} series=${bars}
    x=${{ range: [-0.6, buckets.length - 0.4], axis: { splits: () => buckets.map((_, index) => index), values: () => buckets.map((_, index) => index * 10), space: 1 } }} rows=${buckets.map((number, index) => [name(index), number])} columns=${columnsOf("Trust", "Memories")} />`;
}

function Latency({ of }) {
  const buckets = of?.buckets || [];
  const data = useMemo(() => [buckets.map((_, index) => index), buckets.map(([, number]) => number)], [of]);
  if (!of) return nothing("Recall latency", "Only a token for the whole server sees how long searches took.");
  if (!of.count) return nothing("Recall latency", "No search was answered since the server started.");
  const name = ([limit]) => (limit === null || limit === Infinity ? "more" : `≤${limit}`);
  return html`<${Plot} title="Recall latency" says=${`Of ${plural(of.count, "search", "searches")} since the server started, half took at most ${Math.round(of.p50)} ms and 95 % at most ${Math.round(of.p95)} ms.`} data=${data} series=${bars}
    x=${{ range: [-0.6, buckets.length - 0.4], axis: { splits: () => buckets.map((_, index) => index), values: () => buckets.map(name), rotate: -40, size: 60, space: 1 } }} rows=${buckets.map((one) => [`${name(one)} ms`, one[1]])} columns=${columnsOf("Time", "Searches")} />`;
}

/** What the calls of models used, today and in all, as a plot of calls and tables. */
function Spending({ of }) {
  const all = of?.in_all || [];
  const data = useMemo(() => [all.map((_, index) => index), all.map((one) => one.calls)], [of]);
  if (!of) return nothing("Spending", "Only a token for the whole server sees what models cost.");
  if (!all.length) return nothing("Spending", "No language model was called, so nothing was spent.");
  const names = all.map((one) => one.operation);
  const total = sum(all.map((one) => one.cost || 0));
  const columns = [["Operation", "operation"], ["Model", "model"], ["Calls", "calls"], ["Failed", "failed"], ["Tokens sent", "sent"], ["Tokens received", "received"], ["Cost", "cost"]]
    .map(([title, name], index) => ({ title, class: index > 1 && "number", cell: (row) => (typeof row[name] === "number" ? row[name].toLocaleString("en", { maximumFractionDigits: 4 }) : html`<bdi>${visible(row[name] ?? "unknown")}</bdi>`) }));
  const today = of.today.length ? `today ${plural(sum(of.today.map((one) => one.calls)), "call")}` : "none today";
  return html`<${Plot} title="Spending" says=${`${plural(sum(data[1]), "call")} of models in all, ${today}${total ? `; ${total.toFixed(2)} in the currency of the prices` : ""}.`} data=${data} series=${bars} x=${wordAxis(names)} rows=${all} columns=${columns} />`;
}

/** An axis with a name below each bar. */
function wordAxis(names) {
  const slanted = names.length > 4;
  return { range: [-0.6, names.length - 0.4], axis: { splits: () => names.map((_, index) => index), values: () => names.map((name) => name.slice(0, slanted ? 11 : 14)), rotate: slanted ? -40 : 0, size: slanted ? 76 : 40, space: 1 } };
}
