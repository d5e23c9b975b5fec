// One graph on a canvas: drag and wheel move it, keys walk over it, only what is in sight is drawn.

const kLeast = 0.02, kMost = 2.5, kReadable = 0.7;

class GraphView {
  /** `told(index or null)`: a node was picked by hand. */
  constructor(graph, told) {
    this.graph = graph;
    this.told = told;
    this.picked = null;
    this.marked = new Set();
    this.paint = () => "--k7";
    this.scale = 1; this.left = 0; this.top = 0;
    this.prepare();
    this.canvas = el("canvas", { tabindex: "0", role: "application",
      "aria-label": `Graph ${graph.name}: ${plural(graph.nodes.length, "node")}. Arrow keys walk along edges and layers, plus and minus zoom, F shows all. The table of nodes below says the same.` });
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  prepare() {
    const nodes = this.graph.nodes, maker = new Map();
    nodes.forEach((node, i) => node.outputs.forEach((output) => maker.set(output, i)));
    this.label = nodes.map((node) => shown(plain(node.op)));
    this.inputs = nodes.map((node) => [...new Set(node.inputs.map((name) => maker.get(name)).filter((from) => from !== undefined))]);
    this.readers = nodes.map(() => []);
    this.inputs.forEach((list, to) => list.forEach((from) => this.readers[from].push(to)));
    this.width = this.label.map((label) => Math.min(220, 24 + 7.4 * label.length));
    this.place = layered(this.inputs.map((inputs, i) => ({ inputs, width: this.width[i] })));
    const { x, y, size } = this.place, box = { left: 0, right: 1, top: 0, bottom: 1 };
    for (let i = 0; i < size; ++i) {
      box.left = Math.min(box.left, x[i] - this.width[i] / 2); box.right = Math.max(box.right, x[i] + this.width[i] / 2);
      box.top = Math.min(box.top, y[i] - kHeight); box.bottom = Math.max(box.bottom, y[i] + kHeight);
    }
    this.box = box;
    this.spans = this.place.edges.map((points) => points.reduce((s, p) => [Math.min(s[0], x[p]), Math.max(s[1], x[p]), Math.min(s[2], y[p]), Math.max(s[3], y[p])], [Infinity, -Infinity, Infinity, -Infinity]));
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, { clientWidth, clientHeight } = this.canvas;
    if (!clientWidth) return;
    this.canvas.width = clientWidth * ratio;
    this.canvas.height = clientHeight * ratio;
    if (!this.seen) { this.seen = true; this.begin(); }
    this.draw();
  }

  /** The beginning of the graph, large enough to read, the whole where that is. */
  begin() {
    const { clientWidth: w, clientHeight: h } = this.canvas, { box } = this;
    const whole = Math.min(w / (box.right - box.left + 40), h / (box.bottom - box.top + 40));
    this.scale = Math.min(1, Math.max(whole, kReadable));
    let x = (box.left + box.right) / 2;
    if (whole < this.scale) {
      const first = Array.from({ length: this.place.size }, (_, i) => i).filter((i) => this.place.y[i] < h / this.scale);
      x = sum(first, (i) => this.place.x[i]) / first.length;
    }
    this.left = x - w / 2 / this.scale;
    this.top = whole >= this.scale ? (box.top + box.bottom) / 2 - h / 2 / this.scale : box.top - 16;
  }

  fit() {
    const { clientWidth: w, clientHeight: h } = this.canvas, { box } = this;
    this.scale = Math.max(kLeast, Math.min(1, w / (box.right - box.left + 40), h / (box.bottom - box.top + 40)));
    this.left = (box.left + box.right) / 2 - w / 2 / this.scale;
    this.top = (box.top + box.bottom) / 2 - h / 2 / this.scale;
    this.draw();
  }

  zoom(by, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const next = Math.min(kMost, Math.max(kLeast, this.scale * by));
    this.left += x / this.scale - x / next;
    this.top += y / this.scale - y / next;
    this.scale = next;
    this.draw();
  }

  /** In the middle of what is seen, and large enough to read. */
  show(indices) {
    if (!indices.length) return;
    const { x, y } = this.place, { clientWidth: w, clientHeight: h } = this.canvas;
    const xs = indices.map((i) => x[i]), ys = indices.map((i) => y[i]);
    const far = [Math.max(...xs) - Math.min(...xs) + 240, Math.max(...ys) - Math.min(...ys) + 160];
    this.scale = Math.min(Math.max(this.scale, kReadable), Math.max(0.12, Math.min(w / far[0], h / far[1], 1)));
    this.left = (Math.max(...xs) + Math.min(...xs)) / 2 - w / 2 / this.scale;
    this.top = (Math.max(...ys) + Math.min(...ys)) / 2 - h / 2 / this.scale;
    this.draw();
  }

  mark(picked, marked, show) {
    this.picked = picked;
    this.marked = new Set(marked);
    if (show) this.show(picked === null ? [...marked] : [picked]);
    this.draw();
  }

  at(clientX, clientY) {
    const rect = this.canvas.getBoundingClientRect(), { x, y } = this.place;
    const px = (clientX - rect.left) / this.scale + this.left, py = (clientY - rect.top) / this.scale + this.top;
    const slack = 4 / this.scale;
    for (let i = 0; i < this.place.size; ++i)
      if (Math.abs(px - x[i]) <= this.width[i] / 2 + slack && Math.abs(py - y[i]) <= kHeight / 2 + slack) return i;
    return null;
  }

  listen() {
    const { canvas } = this, fingers = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, event);
      moved = 0;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
      if (fingers.size === 2) {
        const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId), rect = canvas.getBoundingClientRect();
        const apart = (a) => Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY) || 1;
        this.zoom(apart(event) / apart(before), (event.clientX + other.clientX) / 2 - rect.left, (event.clientY + other.clientY) / 2 - rect.top);
      }
      moved += Math.abs(dx) + Math.abs(dy);
      this.left -= dx / this.scale / fingers.size;
      this.top -= dy / this.scale / fingers.size;
      fingers.set(event.pointerId, event);
      canvas.classList.add("moving");
      this.draw();
    });
    const up = (event) => {
      const known = fingers.delete(event.pointerId);
      canvas.classList.remove("moving");
      if (known && event.type === "pointerup" && moved < 6) this.told(this.at(event.clientX, event.clientY));
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("wheel", (event) => {
      const zooms = event.ctrlKey || event.metaKey;
      if (!zooms && document.activeElement !== canvas) return;  // the page scrolls
      event.preventDefault();
      const rect = canvas.getBoundingClientRect();
      if (zooms) return this.zoom(Math.exp(-event.deltaY * 0.01), event.clientX - rect.left, event.clientY - rect.top);
      this.left += event.deltaX / this.scale;
      this.top += event.deltaY / this.scale;
      this.draw();
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const simple = { "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), f: () => this.fit(), Escape: () => this.told(null) }[event.key];
    if (simple) { simple(); return; }
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const next = this.picked === null ? 0 : this.neighbour(this.picked, event.key);
    if (next === undefined || next >= this.place.size) return;
    this.told(next);
    this.show([next]);
  }

  neighbour(node, key) {
    const { x, y, size } = this.place;
    if (key === "ArrowUp") return this.inputs[node][0];
    if (key === "ArrowDown") return this.readers[node][0];
    const row = Array.from({ length: size }, (_, i) => i).filter((i) => y[i] === y[node]).sort((a, b) => x[a] - x[b]);
    return row[row.indexOf(node) + (key === "ArrowRight" ? 1 : -1)];
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.paintAll(); });
  }

  paintAll() {
    const { canvas, scale } = this, context = canvas.getContext("2d"), ratio = window.devicePixelRatio || 1;
    const colours = new Map(), of = (name) => colours.get(name) ?? colours.set(name, name.startsWith("--") ? colour(name) : name).get(name);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.setTransform(scale * ratio, 0, 0, scale * ratio, -this.left * scale * ratio, -this.top * scale * ratio);
    const seen = { left: this.left - 120, right: this.left + canvas.clientWidth / scale + 120, top: this.top - 60, bottom: this.top + canvas.clientHeight / scale + 60 };
    this.paintEdges(context, seen, of);
    const { x, y, size } = this.place, words = scale > 0.3;
    context.font = "500 13px system-ui, 'Liberation Sans', sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let i = 0; i < size; ++i) {
      if (x[i] < seen.left || x[i] > seen.right || y[i] < seen.top || y[i] > seen.bottom) continue;
      this.paintNode(context, i, of, words);
    }
  }

  paintNode(context, i, of, words) {
    const { x, y } = this.place, width = this.width[i], fill = of(this.paint(i)), fused = this.graph.nodes[i].op.startsWith("modelflow.");
    const dimmed = this.marked.size > 0 && !this.marked.has(i) && this.picked !== i;
    context.globalAlpha = dimmed ? 0.42 : 1;
    context.beginPath();
    context.roundRect(x[i] - width / 2, y[i] - kHeight / 2, width, kHeight, fused ? 7 : 14);
    context.fillStyle = of("--card");
    context.fill();
    context.globalAlpha *= fused ? 0.92 : 0.2;
    context.fillStyle = fill;
    context.fill();
    context.globalAlpha = dimmed ? 0.42 : 1;
    context.lineWidth = this.picked === i ? 4 : this.marked.has(i) ? 3 : 1.2;
    context.strokeStyle = this.picked === i || this.marked.has(i) ? of("--mark") : fill;
    context.stroke();
    if (words) {
      const painted = this.paint(i);
      context.fillStyle = !fused || painted === "--line" ? of("--ink") : painted.startsWith("--") ? of("--card") : "#14171a";
      context.fillText(this.label[i], x[i], y[i] + 1, width - 10);
    }
    context.globalAlpha = 1;
  }

  paintEdges(context, seen, of) {
    const { x, y, edges } = this.place, curved = this.scale > 0.12;
    const trace = (points) => {
      context.moveTo(x[points[0]], y[points[0]] + kHeight / 2);
      for (let k = 1; k < points.length; ++k) {
        const a = points[k - 1], b = points[k], fromY = y[a] + (k === 1 ? kHeight / 2 : 0), toY = y[b] - (k === points.length - 1 ? kHeight / 2 : 0);
        const half = (fromY + toY) / 2;
        if (curved && x[a] !== x[b]) context.bezierCurveTo(x[a], half, x[b], half, x[b], toY);
        else context.lineTo(x[b], toY);
      }
    };
    const bright = [];
    context.beginPath();
    edges.forEach((points, i) => {
      const [left, right, top, bottom] = this.spans[i];
      if (right < seen.left || left > seen.right || bottom < seen.top || top > seen.bottom) return;
      if (points[0] === this.picked || points.at(-1) === this.picked) bright.push(points);
      else trace(points);
    });
    context.lineWidth = Math.max(1, 0.6 / this.scale);
    context.strokeStyle = of("--before");
    context.globalAlpha = 0.55;
    context.stroke();
    context.globalAlpha = 1;
    context.beginPath();
    bright.forEach(trace);
    context.lineWidth = Math.max(2.2, 1.2 / this.scale);
    context.strokeStyle = of("--mark");
    context.stroke();
  }
}
