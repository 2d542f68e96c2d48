// The time line: five curves over one axis of time, decisions as marks across all of them.

const LANE = 30;
const CHART = { height: 58, gap: 16 };

function curvesOf(limits, cells) {
  const many = cells > 1 ? ` × ${cells} cells` : "";
  const limit = (name, write) => limits[name] && { value: limits[name] * cells, text: `limit ${write(limits[name])}${many}` };
  const per = (name) => (points, i) => (points.columns.seconds[i] > 0 ? points.columns[name][i] / points.columns.seconds[i] : 0);
  return [
    { name: "rows", of: per("rows"), write: perSecond },
    { name: "results", of: per("results"), write: perSecond },
    { name: "state", of: (points, i) => points.columns.state_bytes[i], write: bytes, limit: limit("memory", bytes) },
    { name: "CPU", of: per("engine_seconds"), write: share, limit: limit("cpu", share) },
    { name: "batch time", of: (points, i) => points.columns.slowest[i], write: span },
  ];
}

class TimeLine {
  constructor(place, tip, choose) {
    this.place = place;
    this.tip = tip;
    this.choose = choose;
    this.points = { at: [], columns: {} };
    this.decisions = [];
    this.limits = {};
    this.cells = 1;
    this.cursor = null;
    place.addEventListener("pointermove", (event) => this.moveTo(event.clientX - place.getBoundingClientRect().left + place.scrollLeft));
    place.addEventListener("pointerleave", () => this.hide());
    place.addEventListener("blur", () => this.hide());
    place.addEventListener("keydown", (event) => this.key(event));
  }

  show(points, decisions, limits, cells) {
    Object.assign(this, { points, decisions, limits, cells: Math.max(1, cells) });
    this.draw();
  }

  get gutter() {
    return this.width < 560 ? 8 : 128;
  }

  draw() {
    this.width = Math.max(260, this.place.clientWidth);
    const { at } = this.points;
    const moments = this.decisions.map((each) => each.at).filter((each) => each > 0);
    this.from = Math.min(...at.slice(0, 1), ...moments);
    this.to = Math.max(this.endOf(at.length - 1), ...moments, this.from + 1);
    const curves = curvesOf(this.limits, this.cells);
    const height = LANE + curves.length * (CHART.height + CHART.gap) + 18;
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.mark : undefined;
    const picture = drawn("svg", { width: this.width, height, viewBox: `0 0 ${this.width} ${height}` });
    if (at.length || moments.length) {
      this.drawBands(picture, height);
      curves.forEach((curve, place) => this.drawCurve(picture, curve, LANE + place * (CHART.height + CHART.gap) + CHART.gap));
      this.drawTimes(picture, height);
      this.drawDecisions(picture, height);
    } else {
      picture.append(drawn("text", { class: "dim", x: 8, y: 40 }, "waiting for the first micro-batch"));
    }
    this.line = drawn("line", { class: "cursor", y1: LANE, y2: height - 18, visibility: "hidden" });
    picture.append(this.line);
    this.place.replaceChildren(picture);
    if (focused !== undefined) {
      const again = picture.querySelector(`[data-mark="${CSS.escape(focused)}"]`);
      if (again) again.focus({ preventScroll: true });
    }
    if (this.cursor !== null) this.point(Math.min(this.cursor, at.length - 1));
  }

  // A point lasts until the next one begins, the last one for as long as it took.
  endOf(place) {
    const { at, columns } = this.points;
    if (place < 0) return -Infinity;
    return place + 1 < at.length ? at[place + 1] : at[place] + columns.slowest[place];
  }

  x(at) {
    return this.gutter + ((this.width - this.gutter - 12) * (at - this.from)) / (this.to - this.from);
  }

  // Where cells were short of CPU.
  drawBands(picture, height) {
    const { at, columns } = this.points;
    const isShort = (i) => columns.short && columns.short[i] > 0;
    for (let i = 0; i < at.length; i++) {
      if (!isShort(i)) continue;
      const first = i;
      while (i + 1 < at.length && isShort(i + 1)) i++;
      const [left, right] = [this.x(at[first]), this.x(this.endOf(i))];
      picture.append(drawn("rect", { class: "band", x: left, y: LANE, width: Math.max(1, right - left), height: height - 18 - LANE }, drawn("title", {}, "short of CPU")));
    }
  }

  drawCurve(picture, curve, top) {
    const { at } = this.points;
    const values = at.map((_, i) => curve.of(this.points, i));
    let most = Math.max(...values, 1e-9);
    const limit = curve.limit;
    if (limit && limit.value <= 4 * most) most = Math.max(most, limit.value * 1.05);
    const floor = top + CHART.height;
    const y = (value) => floor - (CHART.height * value) / most;
    const now = (this.now || {})[curve.name]; // As on the tiles: over the last batches.
    const last = values.length ? curve.write(now === undefined ? values[values.length - 1] : now) : "";
    picture.append(drawn("line", { class: "axis", x1: this.gutter, x2: this.width, y1: floor, y2: floor }));
    if (values.length) {
      const steps = values.map((value, i) => `${this.x(at[i]).toFixed(1)},${y(value).toFixed(1)} H${this.x(this.endOf(i)).toFixed(1)}`);
      const line = steps.join(" L");
      picture.append(
        drawn("path", { class: "area", d: `M${this.x(at[0]).toFixed(1)},${floor} L${line} V${floor} Z` }),
        drawn("path", { class: "curve", "data-curve": curve.name, d: `M${line}` }),
      );
    }
    if (limit) {
      const inside = limit.value <= most;
      if (inside) picture.append(drawn("line", { class: "limit", x1: this.gutter, x2: this.width, y1: y(limit.value), y2: y(limit.value) }));
      picture.append(drawn("text", { class: "limit-text", x: this.width - 12, y: top - 4, "text-anchor": "end" }, inside ? limit.text : `${limit.text}, far above`));
    }
    if (this.gutter > 8) {
      picture.append(
        drawn("text", { class: "dim", x: 4, y: top + 12 }, curve.name),
        drawn("text", { class: "strong", x: 4, y: top + 30 }, last),
        drawn("text", { class: "dim", x: 4, y: top + 47 }, `up to ${curve.write(most)}`),
      );
    } else {
      picture.append(drawn("text", { class: "dim", x: 4, y: top - 4 }, `${curve.name} ${last}`));
    }
  }

  drawTimes(picture, height) {
    const steps = Math.max(2, Math.floor((this.width - this.gutter) / 140));
    for (let step = 0; step <= steps; step += 1) {
      const at = this.from + ((this.to - this.from) * step) / steps;
      const anchor = step === 0 ? "start" : step === steps ? "end" : "middle";
      picture.append(drawn("text", { class: "dim", x: this.x(at), y: height - 3, "text-anchor": anchor }, clockTime(at)));
    }
  }

  // Marks that would lie on each other become one with their number.
  drawDecisions(picture, height) {
    let group = null;
    const groups = [];
    for (const each of this.decisions) {
      const x = this.x(Math.min(Math.max(each.at, this.from), this.to));
      if (group && x - group.x < 16) group.all.push(each);
      else groups.push((group = { x, all: [each] }));
    }
    for (const { x, all } of groups) {
      const newest = all[all.length - 1];
      const bad = all.some((each) => each.bad) ? " bad" : all.every((each) => each.minor) ? " minor" : "";
      const chosen = all.some((each) => each.id === this.chosen) ? " chosen" : "";
      const said = all.length > 1 ? `${all.length} decisions, the last: ${newest.title}` : `${newest.title} ${newest.summary}`;
      const mark = drawn(
        "g", { class: `event${bad}${chosen}`, "aria-label": said, "data-mark": newest.id },
        drawn("title", {}, said),
        drawn("line", { x1: x, x2: x, y1: 22, y2: height - 18 }),
        drawn("circle", { cx: x, cy: 14, r: all.length > 1 ? 8 : 6 }),
        all.length > 1 ? drawn("text", { x, y: 17.5, "text-anchor": "middle" }, all.length > 99 ? "…" : String(all.length)) : null,
      );
      picture.append(pressable(mark, () => {
        const place = all.findIndex((each) => each.id === this.chosen);
        this.choose(all[place > 0 ? place - 1 : all.length - 1].id);
      }));
    }
  }

  moveTo(x) {
    const { at } = this.points;
    if (!at.length) return;
    const wanted = this.from + ((x - this.gutter) / (this.width - this.gutter - 12)) * (this.to - this.from);
    const next = at.findIndex((each) => each > wanted);
    this.point(next === -1 ? at.length - 1 : Math.max(0, next - 1));
  }

  point(index) {
    const { at, columns } = this.points;
    if (index < 0 || !at.length) return;
    this.cursor = index;
    const x = this.x((at[index] + this.endOf(index)) / 2);
    for (const [name, value] of [["x1", x], ["x2", x], ["visibility", "visible"]]) this.line.setAttribute(name, value);
    const list = element("dl");
    for (const curve of curvesOf(this.limits, this.cells)) list.append(element("dt", {}, curve.name), element("dd", {}, curve.write(curve.of(this.points, index))));
    list.append(element("dt", {}, "late"), element("dd", {}, short(columns.late[index])));
    list.append(element("dt", {}, "asleep"), element("dd", {}, short(columns.asleep[index])));
    if (columns.short && columns.short[index]) list.append(element("dt", {}, "cells short of CPU"), element("dd", {}, short(columns.short[index])));
    this.tip.replaceChildren(element("strong", {}, clockTime(at[index])), list);
    this.tip.hidden = false;
    const left = this.place.offsetLeft + x - this.place.scrollLeft;
    const room = this.place.offsetLeft + this.place.clientWidth;
    this.tip.style.left = `${left + 14 + this.tip.offsetWidth > room ? left - 14 - this.tip.offsetWidth : left + 14}px`;
    this.tip.style.top = `${this.place.offsetTop + LANE + 8}px`;
  }

  hide() {
    this.cursor = null;
    this.tip.hidden = true;
    if (this.line) this.line.setAttribute("visibility", "hidden");
  }

  key(event) {
    if (event.target !== this.place) return;
    const last = this.points.at.length - 1;
    const now = this.cursor === null ? last : this.cursor;
    const wanted = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last, Escape: null }[event.key];
    if (wanted === undefined) return;
    event.preventDefault();
    if (wanted === null) this.hide();
    else this.point(Math.max(0, Math.min(last, wanted)));
  }
}
