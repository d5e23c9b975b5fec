// Where the nodes of a graph stand: in layers from top to bottom, ordered so that edges cross little, moved so that they
// are straight. Linear in nodes and edges: 5000 nodes take a fraction of a second.

const kRow = 58, kGap = 16, kHeight = 28, kLongest = 60, kSweeps = 6;

/** nodes: { width, inputs: [indices of nodes] }. Gives { x, y } of the centres by node, and edges as lists of points. */
function layered(nodes) {
  const graph = withBends(nodes, layers(nodes));
  const rows = ordered(graph);
  placed(graph, rows);
  return { x: graph.x, y: Float64Array.from(graph.layer, (layer) => layer * kRow), edges: graph.edges, size: nodes.length };
}

/** The longest way from an input; what only others wait for (constants, shapes) stands close to its first reader. */
function layers(nodes) {
  const layer = new Int32Array(nodes.length), first = new Int32Array(nodes.length).fill(0x7fffffff);
  nodes.forEach((node, i) => { for (const from of node.inputs) if (from < i) layer[i] = Math.max(layer[i], layer[from] + 1); });
  for (let i = nodes.length - 1; i >= 0; --i) {
    if (!nodes[i].inputs.length && first[i] !== 0x7fffffff) layer[i] = Math.max(0, first[i] - 1);
    for (const from of nodes[i].inputs) first[from] = Math.min(first[from], layer[i]);
  }
  return layer;
}

/** Edges over several layers bend where they pass one; very long ones go straight. */
function withBends(nodes, real) {
  const layer = [...real], width = nodes.map((node) => node.width), up = nodes.map(() => []), down = nodes.map(() => []), edges = [];
  const join = (a, b) => { down[a].push(b); up[b].push(a); };
  nodes.forEach((node, to) => {
    for (const from of node.inputs) {
      if (from >= to) continue;
      const points = [from];
      if (layer[to] - layer[from] <= kLongest)
        for (let at = layer[from] + 1; at < layer[to]; ++at) {
          const bend = layer.push(at) - 1;
          width.push(10); up.push([]); down.push([]);
          join(points.at(-1), bend);
          points.push(bend);
        }
      points.push(to);
      if (layer[to] - layer[points.at(-2)] === 1) join(points.at(-2), to);
      edges.push(points);
    }
  });
  return { layer, width, up, down, edges, x: new Float64Array(layer.length), real: nodes.length };
}

/** Layers as lists, each node near the middle of its neighbours in the layer before, then behind, and so on. */
function ordered(graph) {
  const rows = [];
  graph.layer.forEach((layer, i) => (rows[layer] ??= []).push(i));
  const place = new Float64Array(graph.layer.length);
  const number = (row) => row.forEach((node, i) => { place[node] = i - row.length / 2; });
  rows.forEach(number);
  const wish = new Float64Array(graph.layer.length);
  for (let sweep = 0; sweep < kSweeps; ++sweep) {
    const down = sweep % 2 === 0, near = down ? graph.up : graph.down;
    for (let k = 0; k < rows.length; ++k) {
      const row = rows[down ? k : rows.length - 1 - k];
      if (row.length < 2) continue;
      for (const node of row) wish[node] = near[node].length ? sum(near[node], (other) => place[other]) / near[node].length : place[node];
      row.sort((a, b) => wish[a] - wish[b]);
      number(row);
    }
  }
  return rows;
}

/** As near to the middle of the neighbours as the order and the widths allow: the least sum of squares. */
function placed(graph, rows) {
  const { x, width } = graph;
  for (const row of rows) {
    let at = 0;
    for (const node of row) { x[node] = at + width[node] / 2; at += width[node] + kGap; }
    for (const node of row) x[node] -= at / 2;
  }
  for (let sweep = 0; sweep < kSweeps + 2; ++sweep) {
    const down = sweep % 2 === 0;
    for (let k = 0; k < rows.length; ++k) settle(graph, rows[down ? k : rows.length - 1 - k], down ? graph.up : graph.down);
  }
}

/** Blocks of nodes that touch move together to the weighted mean of what they want. Straight bends matter most. */
function settle({ x, width, real }, row, near) {
  const blocks = [];
  let offset = 0;
  row.forEach((node, i) => {
    if (i) offset += (width[row[i - 1]] + width[node]) / 2 + kGap;
    const around = near[node], weight = around.length ? (node >= real ? 4 : 1) : 0.05;
    const middle = around.length ? median(around.map((other) => x[other])) : x[node];
    blocks.push({ weight, want: middle - offset, from: i });
    while (blocks.length > 1 && blocks.at(-2).want >= blocks.at(-1).want) {
      const last = blocks.pop(), before = blocks.at(-1), total = before.weight + last.weight;
      before.want = (before.want * before.weight + last.want * last.weight) / total;
      before.weight = total;
    }
  });
  offset = 0;
  let block = 0;
  row.forEach((node, i) => {
    if (i) offset += (width[row[i - 1]] + width[node]) / 2 + kGap;
    while (block + 1 < blocks.length && blocks[block + 1].from <= i) ++block;
    x[node] = blocks[block].want + offset;
  });
}

function median(values) {
  if (values.length === 1) return values[0];
  if (values.length === 2) return (values[0] + values[1]) / 2;
  values.sort((a, b) => a - b);
  const half = values.length >> 1;
  return values.length % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}
