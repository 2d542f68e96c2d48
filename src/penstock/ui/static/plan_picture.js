// The plan as a picture: streams on the left, results on the right; where that is too wide, the
// same tree as an indented list. Shapes are made once per plan, and then only their texts change.

const BOX = { down: 14, indent: 22, widest: 184, narrowest: 148, gap: 60 };
const KNOWN_LEVELS = new Set(["rows", "bytes", "asleep", "completion", "allowance", "staleness"]);

class PlanPicture {
  constructor(place, detail) {
    this.place = place;
    this.detail = detail;
    this.shape = "";
    this.nodes = new Map();
    this.chosen = null;
  }

  show(tree, numbers, outcome) {
    const depth = 1 + Math.max(1, ...tree.roots.map(depthOf));
    const narrow = this.place.clientWidth < depth * BOX.narrowest + (depth - 1) * BOX.gap + 4;
    const shape = `${narrow}|${tree.plan}`;
    if (shape !== this.shape) {
      this.shape = shape;
      this.narrow = narrow;
      this.tall = narrow ? 62 : 80;
      this.chosen = null;
      this.detail.hidden = true;
      this.draw(tree, narrow);
    }
    for (const node of this.nodes.values()) this.fill(node, numbers[node.tree.key] || {}, outcome);
    if (this.chosen) this.explain(this.nodes.get(this.chosen));
  }

  draw(tree, narrow) {
    this.nodes.clear();
    if (!tree.roots.length) {
      this.place.replaceChildren(element("code", {}, tree.plan || "no plan yet"));
      return;
    }
    const output = { key: "output", name: "results", kind: "output", inputs: tree.roots };
    const placed = [];
    if (narrow) this.placeList(output, 0, placed);
    else this.placeAcross(output, depthOf(output), { row: 0, ...this.columns(depthOf(output)) }, placed);
    const width = Math.max(...placed.map((each) => each.x + each.width)) + 2;
    const height = Math.max(...placed.map((each) => each.y)) + this.tall + 2;
    const picture = drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Plan ${tree.plan}` });
    for (const each of placed) if (each.above) picture.append(this.edge(each, narrow));
    for (const each of placed) picture.append(this.box(each));
    for (const each of placed) if (each.above) picture.append(each.rate);
    this.place.replaceChildren(picture);
  }

  // As wide as there is room for.
  columns(depth) {
    const room = (this.place.clientWidth - 4 - (depth - 1) * BOX.gap) / depth;
    const width = Math.max(BOX.narrowest, Math.min(BOX.widest, room));
    const gap = (this.place.clientWidth - 4 - depth * width) / Math.max(1, depth - 1);
    return { width, gap: Math.max(BOX.gap, Math.min(130, gap)) };
  }

  // Every operator stands just before its consumer, so that edges are short.
  placeAcross(tree, depth, next, placed, above = null, number = 0) {
    const node = { tree, above, number, width: next.width, x: (depth - 1) * (next.width + next.gap) + 1 };
    const inputs = tree.inputs.map((each, place) => this.placeAcross(each, depth - 1, next, placed, node, place));
    if (inputs.length) node.y = (inputs[0].y + inputs[inputs.length - 1].y) / 2;
    else node.y = next.row++ * (this.tall + BOX.down) + 1;
    placed.push(node);
    return node;
  }

  placeList(tree, depth, placed, above = null, number = 0) {
    const x = depth * BOX.indent + 1;
    const node = { tree, above, number, x, y: placed.length * (this.tall + BOX.down) + 1 };
    node.width = Math.max(150, Math.min(400, this.place.clientWidth - 2) - x);
    placed.push(node);
    tree.inputs.forEach((each, place) => this.placeList(each, depth + 1, placed, node, place));
  }

  edge(node, narrow) {
    const { above } = node;
    const middle = node.y + this.tall / 2;
    let path;
    let at;
    if (narrow) {
      const x = above.x + BOX.indent / 2;
      path = `M${node.x},${middle} H${x} V${above.y + this.tall}`;
      at = { x: node.x + node.width - 8, y: node.y + 18, anchor: "end" };
    } else {
      const [from, to] = [node.x + node.width, above.x];
      const target = above.y + (this.tall * (node.number + 1)) / (above.tree.inputs.length + 1);
      const bend = (from + to) / 2;
      path = `M${from},${middle} C${bend},${middle} ${bend},${target} ${to},${target}`;
      at = { x: from + 8, y: target < middle - 4 ? middle + 17 : middle - 7, anchor: "start" };
    }
    node.line = drawn("path", { class: "edge", d: path });
    node.rate = drawn("text", { class: "rate", x: at.x, y: at.y, "text-anchor": at.anchor });
    return node.line;
  }

  box(node) {
    const { x, y, tree } = node;
    node.lines = [0, 1, 2].map((row) => drawn("text", { class: "dim", x: x + 12, y: y + 36 + 15 * row }));
    node.bar = drawn("rect", { class: "done", x: x + 12, y: y + this.tall - 7, width: 0, height: 3, rx: 1.5 });
    node.track = drawn("rect", { class: "track", x: x + 12, y: y + this.tall - 7, width: node.width - 24, height: 3, rx: 1.5 });
    const source = this.sources && this.sources[tree.name];
    const named = source && source !== tree.name ? `${source} (${tree.name})` : tree.name;
    const name = cut(named, Math.floor((node.width - 24) / 7.6));
    const group = drawn(
      "g", { class: `node ${tree.kind}`, "data-key": tree.key },
      drawn("rect", { class: "body", x, y, width: node.width, height: this.tall, rx: 6 }),
      drawn("text", { class: "strong", x: x + 12, y: y + 19 }, name),
      ...node.lines, node.track, node.bar,
    );
    node.group = pressable(group, () => {
      this.chosen = this.chosen === node.tree.key ? null : node.tree.key;
      for (const each of this.nodes.values()) each.group.setAttribute("aria-pressed", String(each.tree.key === this.chosen));
      this.detail.hidden = this.chosen === null;
      if (this.chosen) this.explain(node);
    });
    this.nodes.set(tree.key === "output" ? "output" : tree.key, node);
    return group;
  }

  fill(node, numbers, outcome) {
    const { tree } = node;
    node.numbers = tree.kind === "output" ? outcome : numbers;
    const lines = tree.kind === "output"
      ? [["", perSecond(outcome.made)], ["", `${short(outcome.results)} in all`]]
      : nodeLines(tree, numbers);
    if (this.narrow && lines.length > 2) {
      const rest = lines.splice(1);
      lines.push([(rest.find(([kind]) => kind) || [""])[0], rest.map((line) => line[1]).join(" · ")]);
    }
    node.lines.forEach((line, row) => {
      const [kind, text] = lines[row] || ["", ""];
      setText(line, cut(text, Math.floor((node.width - 20) / 6)));
      line.setAttribute("class", kind || "dim");
    });
    const incomplete = numbers.completion !== undefined && numbers.completion < 1;
    node.track.setAttribute("visibility", incomplete ? "visible" : "hidden");
    node.bar.setAttribute("width", incomplete ? (node.width - 24) * numbers.completion : 0);
    if (node.rate) {
      const rate = numbers.made;
      const minus = node.above.tree.kind === "output" && node.number > 0 ? "− " : "";
      setText(node.rate, rate === undefined ? minus : minus + perSecond(rate));
      node.line.setAttribute("stroke-width", (1 + Math.log10(1 + (rate || 0)) * 0.8).toFixed(2));
    }
    const said = [tree.name, node.rate ? node.rate.textContent : "", ...lines.map((line) => line[1])];
    node.group.setAttribute("aria-label", said.filter(Boolean).join(", "));
  }

  explain(node) {
    if (!node) return;
    const { tree, numbers } = node;
    const shown = { covers: tree.key === "output" ? "all results" : tree.key };
    for (const [name, value] of Object.entries(numbers)) shown[FLOW_NAMES[name] || name] = FLOW_NAMES[name] ? perSecond(value) : value;
    if (tree.orders && tree.orders.length) shown["probe orders"] = tree.orders.join("\n");
    this.detail.replaceChildren(fieldList(shown));
  }
}

const FLOW_NAMES = { made: "made", probes: "probes", matches: "matches", resumed: "woken", avoided: "partial results not made" };

function nodeLines(tree, numbers) {
  const lines = [];
  if (numbers.rows !== undefined) {
    const nothing = tree.kind !== "window" && !numbers.rows && !numbers.bytes;
    lines.push(["", nothing ? "stores nothing" : `${short(numbers.rows)} rows · ${bytes(numbers.bytes)}`]);
  }
  if (numbers.completion !== undefined && numbers.completion < 1) lines.push(["warn", `${share(numbers.completion)} complete`]);
  if (numbers.allowance !== undefined && numbers.allowance < 1) lines.push(["warn", `${share(numbers.allowance)} may probe`]);
  if (numbers.staleness) lines.push(["", `${span(numbers.staleness)} stale`]);
  if (numbers.asleep) lines.push(["good", `${short(numbers.asleep)} asleep`]);
  if (numbers.avoided) lines.push(["good", `${perSecond(numbers.avoided)} not made`]);
  if (numbers.probes) lines.push(["", `${perSecond(numbers.probes)} probes`]);
  for (const [name, value] of Object.entries(numbers)) {
    if (!KNOWN_LEVELS.has(name) && !(name in FLOW_NAMES) && value) lines.push(["", `${name.replaceAll("_", " ")} ${fieldText(name, value)}`]);
  }
  return lines;
}

function cut(text, letters) {
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}

function depthOf(tree) {
  return 1 + Math.max(0, ...tree.inputs.map(depthOf));
}
