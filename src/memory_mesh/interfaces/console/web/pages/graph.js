// Graph: the memories and their links, as a picture and as a list.
import { page } from "../api.js";
import { Button, Card, Choice, Loaded, MemoryLink, OneLine, ProblemBox, Tag, Title, address, count, html, navigate, percent, plural, useEffect, useLoad, useMemo, useRef, useState } from "../ui.js";
import { NoMemories } from "../users.js";
import { places } from "./layout.js";
import { cut, useColours } from "./parts.js";

const library = import("../vendor/cytoscape.js"); // it loads while the server reads the links
library.catch(() => {}); // said by the picture that needs it
const LIMIT = 500; // of nodes that can be read; beyond it the server puts clusters together
const HUES = ["accent", "info", "warn", "good", "bad", "soft"];

// cytoscape adds a <style> element, which the Content-Security-Policy refuses, unless an element with this id is there.
if (!document.getElementById("__________cytoscape_stylesheet")) {
  document.head.append(Object.assign(document.createElement("meta"), { id: "__________cytoscape_stylesheet" }));
}

export default function Graph({ route }) {
  const seed = route.args.get("seed") || "";
  const view = route.args.get("view") || "picture";
  const colour = route.args.get("colour") || "kind";
  const depth = Number(route.args.get("depth")) || 2;
  const load = useLoad(() => page("graph", { seed, depth: seed && depth, limit: LIMIT }), [seed, depth]);
  const go = (args) => navigate("/graph", { seed, view, colour, depth: seed ? depth : "", ...args });
  return html`<${Title} note="Memories are linked by what they say of each other, by similarity, and by session.">Graph</${Title}>
    <div class="row spread controls"><${Choice} label="View" value=${view} options=${[["picture", "Picture"], ["list", "List"]]} onChange=${(next) => go({ view: next })} />
      ${view === "picture" && html`<${Choice} label="Colours" value=${colour} options=${[["kind", "Colour by kind"], ["cluster", "by group"], ["session", "by session"]]} onChange=${(next) => go({ colour: next })} />`}
      ${seed && html`<div class="row"><label class="row"><span>Links away</span><select value=${depth} onChange=${(event) => go({ depth: event.target.value })}>${[1, 2, 3, 4].map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
        <${Button} onClick=${() => go({ seed: "", depth: "" })}>Show the whole memory</${Button}></div>`}</div>
    <${Loaded} of=${load}>${(data) => html`
      ${!data.nodes.length && html`<${Card} class="card-empty"><${NoMemories}>${seed ? "Nothing is linked with this memory." : "No memory is active."}</${NoMemories}></${Card}>`}
      ${data.aggregated && html`<p class="faint">There are more memories than can be read at once, so groups of linked memories are one circle, with their number. Click a group to open it.</p>`}
      ${data.newest && html`<p class="faint">Drawn are the newest ${count(data.newest)} links. The page of a memory has all of its links.</p>`}
      ${data.nodes.length > 0 && (view === "list" ? html`<${List} data=${data} go=${go} />` : html`<${Picture} data=${data} go=${go} colour=${colour} />`)}`}</${Loaded}>`;
}

const isGroup = (node) => node.count > 1;
const groupOf = (node, colour) => ({ kind: node.kind || "other", cluster: `group ${(node.cluster ?? 0) + 1}`, session: cut(node.session || "no session", 40) })[colour];

/** Kinds in the order of their frequency, so that the most frequent ones have different colours. */
function useKinds(nodes, kindOf, colour) {
  return useMemo(() => {
    const numbers = new Map();
    for (const node of nodes) numbers.set(kindOf(node), (numbers.get(kindOf(node)) || 0) + (node.count || 1));
    return [...numbers].sort((one, other) => other[1] - one[1]).map(([kind]) => kind);
  }, [nodes, colour]);
}

function Picture({ data, go, colour }) {
  const frame = useRef();
  const drawn = useRef();
  const naming = useRef();
  const [chosen, setChosen] = useState(null);
  const [problem, setProblem] = useState(null);
  const colours = useColours();
  const now = useRef(colours); // the colours that the graph is drawn in
  const kindOf = (node) => groupOf(node, colour);
  const kinds = useKinds(data.nodes, kindOf, colour);
  const hue = (node) => HUES[Math.min(kinds.indexOf(kindOf(node)), HUES.length - 1)];
  useEffect(() => {
    const known = new Set(data.nodes.map((node) => node.id));
    const at = places(data.nodes, data.edges, radius);
    const elements = [
      ...data.nodes.map((node) => ({ data: { ...node, label: isGroup(node) ? count(node.count) : cut(node.title || node.id, 28), across: radius(node), hue: hue(node) }, position: at.get(node.id) })),
      ...data.edges.filter((edge) => known.has(edge.from) && known.has(edge.to)).map((edge, index) => ({ data: { id: `edge ${index}`, source: edge.from, target: edge.to, type: edge.type, width: 1 + 2 * (edge.strength ?? 0.5) } })),
    ];
    const draw = (cytoscape) => {
      const graph = cytoscape({ container: frame.current, elements, style: looks(now.current), minZoom: 0.1, maxZoom: 4, layout: { name: "preset", fit: false }, ...viewOf(at, frame.current) });
      graph.one("render", () => { if (frame.current) frame.current.dataset.drawn = "yes"; });
      graph.on("tap", (event) => choose(event.target === graph || event.target.isEdge() ? null : event.target.data()));
      graph.on("mouseover", "node", () => { frame.current.style.cursor = "pointer"; });
      graph.on("mouseout", "node", () => { frame.current.style.cursor = ""; });
      name(graph);
      graph.on("zoom", () => {
        clearTimeout(naming.current);
        naming.current = setTimeout(() => drawn.current === graph && name(graph), 60);
      });
      drawn.current = graph;
      frame.current.graph = graph; // for tests
    };
    let gone = false;
    library.then((loaded) => gone || draw(loaded.default), () => gone || setProblem(UNLOADED));
    return () => {
      gone = true;
      drawn.current?.destroy();
      drawn.current = null;
    };
  }, [data, colour]);
  useEffect(() => {
    if (now.current !== colours) drawn.current?.style(looks(colours)); // it takes as long as the first drawing
    now.current = colours;
  }, [colours]);
  const choose = (node) => {
    setChosen(node);
    const graph = drawn.current;
    graph?.elements().removeClass("chosen");
    const circle = node && graph?.getElementById(node.id);
    circle?.addClass("chosen").connectedEdges().addClass("chosen");
    if (circle && !seen(circle.renderedPosition(), graph)) graph.center(circle);
  };
  const fit = () => drawn.current?.viewport(viewOf(new Map(drawn.current.nodes().map((node) => [node.id(), node.position()])), frame.current));
  const zoom = (factor) => {
    const graph = drawn.current; // nothing before the library has come
    graph?.zoom({ level: graph.zoom() * factor, renderedPosition: { x: graph.width() / 2, y: graph.height() / 2 } });
  };
  if (problem) return html`<${ProblemBox} problem=${problem} />`;
  return html`<div class="graph-columns"><${Card} class="graph-card">
    <div class="graph" ref=${frame} role="img" aria-label=${`${plural(data.nodes.length, "node")} and ${plural(data.edges.length, "link")}. The list beside it has the same.`}></div>
    <div class="graph-tools"><${Button} class="small" aria-label="Zoom in" onClick=${() => zoom(1.4)}>+</${Button}><${Button} class="small" aria-label="Zoom out" onClick=${() => zoom(1 / 1.4)}>−</${Button}><${Button} class="small" onClick=${fit}>Fit</${Button}></div>
    <div class="row legend">${kinds.slice(0, HUES.length).map((kind, index) => html`<span><i class=${`dot ${HUES[index]}`}></i>${index === HUES.length - 1 && kinds.length > HUES.length ? "others" : kind}</span>`)}
      ${LINES.filter(([type]) => data.edges.some((edge) => (LINES.some(([one]) => one === edge.type) ? edge.type : "") === type)).map(([type, name]) => html`<span><i class=${`line ${type}`}></i>${name}</span>`)}</div>
    <div aria-live="polite">${chosen ? html`<${Chosen} node=${chosen} go=${go} />` : html`<p class="faint">Drag to move, scroll to zoom, click a circle to see what it is.</p>`}</div>
  </${Card}><${Beside} nodes=${data.nodes} kinds=${kinds} kindOf=${kindOf} chosen=${chosen} choose=${choose} /></div>`;
}

const LINES = [["session", "next in the session"], ["similar", "similar"], ["", "linked"]];

/** Whether a place of the picture is in view. */
const seen = ({ x, y }, graph) => x > 20 && y > 20 && x < graph.width() - 20 && y < graph.height() - 20;

/** The circles as a list of buttons, by their colour, for the keyboard. */
function Beside({ nodes, kinds, kindOf, chosen, choose }) {
  const [shown, setShown] = useState(100);
  const listed = useMemo(() => [...nodes].sort((one, other) => kinds.indexOf(kindOf(one)) - kinds.indexOf(kindOf(other))), [nodes, kinds]);
  return html`<${Card} title="In the picture" note=${count(nodes.length)} class="beside"><ul class="plain">${listed.slice(0, shown).map((node, index) => html`
    ${(index === 0 || kindOf(listed[index - 1]) !== kindOf(node)) && html`<li class="faint">${kindOf(node)}</li>`}
    <li key=${node.id}><button type="button" class="node-button" data-item aria-pressed=${chosen?.id === node.id} onClick=${() => choose(node)}>
      <i class=${`dot ${HUES[Math.min(kinds.indexOf(kindOf(node)), HUES.length - 1)]}`}></i><${OneLine}>${isGroup(node) ? `${count(node.count)} memories: ${node.title}` : node.title || node.id}</${OneLine}></button></li>`)}</ul>
    ${listed.length > shown && html`<${Button} class="small" onClick=${() => setShown(shown + 200)}>Show more</${Button}>`}</${Card}>`;
}

const UNLOADED = { what: "The picture could not be loaded.", remedy: "Look whether the server runs, then reload. The list view has the same." };
const EDGE = 60; // pixels around the circles, for their names
const LARGEST = 1.1; // the zoom of a few circles: their names stay as large as other text

/** The zoom and the place that show all nodes. The `fit` of cytoscape measures every name, which takes longer than drawing. */
function viewOf(at, element) {
  const places = [...at.values()];
  const [left, right] = [Math.min(...places.map((one) => one.x)), Math.max(...places.map((one) => one.x))];
  const [top, bottom] = [Math.min(...places.map((one) => one.y)), Math.max(...places.map((one) => one.y))];
  const { clientWidth: width, clientHeight: height } = element;
  const zoom = Math.max(0.1, Math.min(LARGEST, (width - 2 * EDGE) / (right - left + 1), (height - 2 * EDGE) / (bottom - top + 1)));
  return { zoom, pan: { x: width / 2 - (zoom * (left + right)) / 2, y: height / 2 - (zoom * (top + bottom)) / 2 } };
}

/** Give the circles their names, in the size of other text at any zoom: the best linked ones first, as far as there is room, also for the circles. */
function name(graph) {
  const taken = [];
  const circles = graph.nodes().map((node) => node.renderedPosition());
  graph.batch(() => graph.nodes("[count <= 1]").sort((one, other) => other.data("size") - one.data("size")).forEach((node) => {
    const { x, y } = node.renderedPosition();
    const isFree = !taken.some((one) => Math.abs(one.x - x) < NAME[0] && Math.abs(one.y - y) < NAME[1])
      && !circles.some((one) => Math.abs(one.x - x) < NAME[0] / 2 && one.y > y + 4 && one.y < y + NAME[1]);
    if (isFree) taken.push({ x, y });
    node.toggleClass("nameless", !isFree);
  }));
  graph.style().update();
}

const NAME = [118, 46]; // pixels of a name with its circle
const atZoom = (pixels) => (node) => pixels / node.cy().zoom();

const across = (node) => Math.max(node.data("across"), atZoom(12)(node));

const radius = (node) => Math.min(isGroup(node) ? 70 : 26, 12 + 5 * Math.log2(1 + (isGroup(node) ? node.count * 2 : node.size || 0)));

const looks = (colours) => [
  { selector: "node", style: { "background-color": (node) => colours[node.data("hue")], width: across, height: across, label: "data(label)", color: colours.ink, "font-size": atZoom(12),
    "text-wrap": "wrap", "text-max-width": atZoom(110), "text-valign": "bottom", "text-margin-y": 4, "border-width": 2, "border-color": colours.card, "text-outline-color": colours.card, "text-outline-width": atZoom(2) } },
  { selector: "node[count > 1]", style: { "text-valign": "center", "text-margin-y": 0, "font-size": atZoom(13), "border-style": "double", "border-width": 5 } },
  { selector: "node[status != 'active'][status]", style: { opacity: 0.55 } },
  { selector: "node.nameless", style: { label: "" } },
  { selector: "node.chosen", style: { label: "data(label)", "border-color": colours.ink, "border-width": 3, "font-weight": "bold", "z-index": 9 } },
  { selector: "edge", style: { "line-color": colours["strong-line"], width: "data(width)", "curve-style": "haystack", opacity: 0.55 } },
  { selector: "edge[type = 'session']", style: { "line-style": "dashed", opacity: 0.4 } },
  { selector: "edge[type != 'session'][type != 'similar']", style: { "line-color": colours.accent } },
  { selector: "edge.chosen", style: { "line-color": colours.ink, opacity: 1 } },
];

function Chosen({ node, go }) {
  if (isGroup(node)) return html`<div class="row spread chosen-node"><span><strong>${count(node.count)} memories</strong> <bdi>${cut(node.title || "", 120)}</bdi></span><${Button} class="small" kind="primary" onClick=${() => go({ seed: node.id })}>Open the group</${Button}></div>`;
  return html`<div class="row spread chosen-node"><div class="chosen-text"><${MemoryLink} id=${node.id} title=${node.title} /><p class="meta"><${Tag}>${node.kind || "other"}</${Tag}>${node.status && html`<span>${node.status}</span>`}${node.trust != null && html`<span>trust ${percent(node.trust)}</span>`}</p></div>
    <div class="actions"><a class="button small primary" href=${address(`/memory/${encodeURIComponent(node.id)}`)}>Open the memory</a><${Button} class="small" onClick=${() => go({ seed: node.id })}>Centre it</${Button}></div></div>`;
}

/** The same as text: every node with its links, the best linked first. */
function List({ data, go }) {
  const [shown, setShown] = useState(100);
  const nodes = useMemo(() => {
    const names = new Map(data.nodes.map((node) => [node.id, node]));
    const links = new Map(data.nodes.map((node) => [node.id, []]));
    for (const edge of data.edges) {
      if (!names.has(edge.from) || !names.has(edge.to)) continue;
      links.get(edge.from).push({ type: edge.type, node: names.get(edge.to) });
      links.get(edge.to).push({ type: edge.type, node: names.get(edge.from) });
    }
    return data.nodes.map((node) => ({ node, links: links.get(node.id) })).sort((one, other) => other.links.length - one.links.length);
  }, [data]);
  const name = (node) => (isGroup(node) ? html`<${Button} class="small" onClick=${() => go({ seed: node.id })}>${count(node.count)} memories: ${cut(node.title || "a group", 60)}</${Button}>` : html`<${MemoryLink} data-item id=${node.id} title=${node.title} />`);
  return html`<${Card} title="Memories and their links" note=${nodes.length}><ul class="items">${nodes.slice(0, shown).map(({ node, links }) => html`<li key=${node.id}>
      <div class="row spread"><span class="chosen-text">${name(node)}</span><${Tag}>${node.kind || "other"}</${Tag}></div>
      ${links.length > 0 && html`<details><summary>${plural(links.length, "link")}</summary><ul class="plain inside">${links.slice(0, 100).map((link) => html`<li><span class="faint">${link.type}</span> ${name(link.node)}</li>`)}</ul></details>`}</li>`)}</ul>
    ${nodes.length > shown && html`<${Button} onClick=${() => setShown(shown + 200)}>Show more</${Button}>`}</${Card}>`;
}
