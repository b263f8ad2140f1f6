// Places for the nodes of a graph: linked nodes attract each other, and all nodes push their neighbours away.
// The layouts of cytoscape took seconds for 500 nodes; this one computes with plain arrays and takes a small part of that.

const ROUNDS = 120;
const LENGTH = 80; // of a link
const REACH = 5 * LENGTH; // nodes that are further apart do not notice each other
const SPACE = 14; // between two circles

/** The place {x, y} of each node, by id. `radius` is a function of a node. */
export function places(nodes, edges, radius) {
  const start = startingPlaces(nodes);
  const index = new Map(nodes.map((node, at) => [node.id, at]));
  const x = Float64Array.from(nodes, (node) => start.get(node.id)[0]);
  const y = Float64Array.from(nodes, (node) => start.get(node.id)[1]);
  const across = Float64Array.from(nodes, radius);
  const links = edges.map((edge) => [index.get(edge.from), index.get(edge.to)]).filter(([from, to]) => from !== undefined && to !== undefined && from !== to);
  for (let round = 0; round < ROUNDS; round += 1) {
    const right = new Float64Array(nodes.length);
    const down = new Float64Array(nodes.length);
    repel(x, y, across, right, down);
    attract(x, y, links, right, down);
    const longest = LENGTH * (1 - round / ROUNDS); // of a step: the nodes come to rest
    for (let at = 0; at < nodes.length; at += 1) {
      const step = Math.hypot(right[at], down[at]) || 1;
      x[at] += (right[at] / step) * Math.min(step, longest);
      y[at] += (down[at] / step) * Math.min(step, longest);
    }
  }
  return new Map(nodes.map((node, at) => [node.id, { x: x[at], y: y[at] }]));
}

function repel(x, y, across, right, down) {
  for (let one = 0; one < x.length; one += 1) {
    for (let other = one + 1; other < x.length; other += 1) {
      const dx = x[one] - x[other] || 0.1;
      const dy = y[one] - y[other];
      if (dx > REACH || dx < -REACH || dy > REACH || dy < -REACH) continue;
      const far = Math.sqrt(dx * dx + dy * dy);
      const gap = far - (across[one] + across[other]) / 2 - SPACE;
      const force = ((LENGTH * LENGTH) / far / 4 + (gap < 0 ? -gap : 0)) / far;
      right[one] += dx * force;
      down[one] += dy * force;
      right[other] -= dx * force;
      down[other] -= dy * force;
    }
  }
}

function attract(x, y, links, right, down) {
  for (const [from, to] of links) {
    const dx = x[to] - x[from];
    const dy = y[to] - y[from];
    const force = (Math.hypot(dx, dy) - LENGTH) / LENGTH / 4;
    if (force <= 0) continue;
    right[from] += dx * force;
    down[from] += dy * force;
    right[to] -= dx * force;
    down[to] -= dy * force;
  }
}

/** Places to begin with: each group on a spiral, and its nodes on a spiral around its centre. */
function startingPlaces(nodes) {
  const groups = new Map();
  for (const node of nodes) groups.set(node.cluster ?? 0, [...(groups.get(node.cluster ?? 0) || []), node]);
  const spiral = (index, step) => [Math.cos(index * 2.4) * step * Math.sqrt(index), Math.sin(index * 2.4) * step * Math.sqrt(index)];
  const step = 45 * Math.sqrt(nodes.length / groups.size) + 40;
  return new Map([...groups.values()].flatMap((group, number) => {
    const [x, y] = spiral(number, step * 1.2);
    return group.map((node, index) => {
      const [right, down] = spiral(index, 45);
      return [node.id, [x + right, y + down]];
    });
  }));
}
