// The page: takes messages, each of which has everything but the past, and shows them.

const message = {};
let clockAhead = 0; // Seconds that the clock of this machine is ahead of the run's.
let points = { at: [], columns: {} };
let shownPlan = null;

const token = tokenOfThisPage();
const picture = new PlanPicture(byId("plan-picture"), byId("plan-detail"));
const marks = new Marks(byId("marks"), byId("mark-detail"), (id) => {
  timeLine.chosen = id;
  timeLine.draw();
});
const timeLine = new TimeLine(byId("time-line"), byId("tip"), (id) => marks.choose(id));
const plans = new Plans(byId("plans"), byId("commands"), token);

function tokenOfThisPage() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  try {
    if (given) sessionStorage.setItem("penstock-token", given);
    return given || sessionStorage.getItem("penstock-token");
  } catch (problem) {
    return given;
  }
}

function take(news) {
  Object.assign(message, news);
  if (news.now) clockAhead = Date.now() / 1000 - news.now;
  takePoints(news.series);
  marks.add(news.decisions, news.whole);
  show();
}

function takePoints({ first, at, columns }) {
  points.at = points.at.slice(0, first).concat(at);
  for (const [name, values] of Object.entries(columns)) {
    points.columns[name] = (points.columns[name] || []).slice(0, first).concat(values);
  }
}

function show() {
  const { start, status, totals, latest, rates, trees, sample, accepts } = message;
  setText(byId("job"), start.job ? `· ${start.job}` : "");
  document.title = start.job ? `${start.job} · Penstock` : "Penstock";
  byId("status").className = `pill ${status}`;
  setText(byId("status"), status);
  setText(byId("query"), start.query || "");
  showJob(start);
  const perSecondOf = (name) => (latest.seconds > 0 ? latest[name] / latest.seconds : 0);
  const rate = Object.values(rates).reduce((sum, each) => sum + each, 0);
  const busy = status === "idle" ? 0 : perSecondOf("engine_seconds");
  const when = isOver(status) ? "at the end" : "now";
  showFacts([
    [`rows ${when}`, perSecond(rate)], [`results ${when}`, perSecond(message.result_rate)], ["rows in all", short(totals.rows)],
    ["results in all", short(totals.results)], ["dropped in all", short(droppedInAll(message.sources))], ["state", bytes(latest.state_bytes || 0)],
    ["CPU in engines", share(busy)], ["last batch took", span(latest.slowest || 0)],
    ["partial results not made", short(totals.avoided)],
  ]);
  showFailure(message.failure || {});
  showSources(message, byId("sources-table"));
  showHealth();
  showRefresh(start, accepts);
  picture.sources = start.streams || {};
  showPlan(trees, { made: message.result_rate, results: totals.results });
  timeLine.now = { rows: rate, results: message.result_rate };
  timeLine.show(points, marks.all, start.limits || {}, start.cells || message.cells.count || 1);
  showCells(message.cells);
  showOverload(message.overload || {});
  plans.show(message.plans, accepts, message.takes_none, status === "running" ? runningPlans(message) : new Map());
  byId("results-none").hidden = sample.rows.length > 0;
  showTable(byId("results-table"), sample.columns, [...sample.rows].reverse(), new Set(sample.columns.keys()));
}

// What ended the run, above everything else.
function showFailure(failure) {
  byId("failure").hidden = !failure.reason;
  if (!failure.reason) return;
  setText(byId("failure-title"), `Failed at ${clockTime(failure.at)}`);
  setText(byId("failure-reason"), failure.reason);
  setText(byId("failure-details"), failure.details || "");
  byId("failure-more").hidden = !failure.details;
}

// How old everything is; drawn again every second, since nothing comes from a run that hangs.
function showHealth() {
  const { status, start } = message;
  if (!start) return;
  const live = !saved && (status === "running" || status === "idle");
  const now = live ? Date.now() / 1000 - clockAhead : null;
  const words = healthWords(message, now);
  byId("health").hidden = !words.length;
  byId("health").replaceChildren(...words.map(([kind, text]) => element("span", { class: kind || false }, text)));
}

function showRefresh(start, accepts) {
  const may = token && (accepts || []).includes("refresh") ? start.refreshes || [] : [];
  const place = byId("refresh");
  place.hidden = !may.length;
  if (place.dataset.shape === JSON.stringify(may)) return;
  place.dataset.shape = JSON.stringify(may);
  place.replaceChildren(...may.map((name) => element("button", { type: "button", onclick: () => plans.send({ command: "refresh", source: name }, byId("refresh-answer")) }, `Read ${name} again`)));
}

// What runs where, in words: cells may run different plans.
function runningPlans({ cells, plans: known }) {
  if (!cells.plans.length) return new Map(known.slice(-1).map((each) => [each.plan, "runs"]));
  return new Map(cells.plans.map((each) => [each.plan, each.cells === cells.count ? "runs" : `runs in ${each.cells} of ${cells.count} cells`]));
}

// Whether the run is short of CPU, and what that costs.
function showOverload(now) {
  const line = byId("overload");
  line.hidden = !now.cells;
  if (!now.cells) return;
  line.className = now.short ? "overload short" : "overload";
  const words = [];
  if (now.short) {
    const where = now.cells > 1 ? ` in ${now.short} of ${now.cells} cells` : "";
    words.push(`Short of CPU${where}${now.seconds ? ` for ${span(now.seconds)} of event time` : ""}`);
    if (now.needed > now.allowed) words.push(`${share(now.allowed / now.needed)} of the probes fit the budget`);
    if (now.most) words.push(`${now.most}: ${share(now.most_part)} of the CPU`);
  } else {
    words.push(`Within the budget of ${now.budget}`);
  }
  if (now.lost) words.push(`about ${short(Math.round(now.lost))} ± ${short(Math.round(now.error))} results lost in all`);
  if (now.owed) words.push(`${short(now.owed)} probes owed, up to ${span(now.age)} old`);
  else if (now.policy === "defer") words.push(now.lost || now.stale ? "no probe is owed" : "no probe is owed, no result is lost");
  if (now.stale) words.push(`${short(now.stale)} results came too late to be fresh`);
  if (now.short && now.policy === "exact") words.push("nothing is left out: the run falls behind");
  setText(line, words.join(" · "));
}

function showJob(start) {
  const { placement, sources, sink, versions, limits } = start;
  const shape = JSON.stringify([placement, sources, sink, versions, limits]);
  if (byId("job-facts").dataset.shape === shape) return;
  byId("job-facts").dataset.shape = shape;
  byId("job-facts").replaceChildren(...fieldList({ placement, sources, sink, limits, versions }).children);
}

function showFacts(facts) {
  const list = byId("facts");
  facts.forEach(([name, value], place) => {
    let tile = list.children[place];
    if (!tile) list.append((tile = element("div", {}, element("dt"), element("dd"))));
    setText(tile.firstChild, name);
    setText(tile.lastChild, value);
  });
}

function showPlan(trees, outcome) {
  const tabs = byId("plan-tabs");
  if (!trees.some((tree) => tree.plan === shownPlan)) shownPlan = trees.length ? trees[0].plan : null;
  const shape = JSON.stringify([trees.map((tree) => [tree.plan, tree.cells]), shownPlan]);
  if (tabs.dataset.shape !== shape) {
    tabs.dataset.shape = shape;
    tabs.replaceChildren(...(trees.length < 2 ? [] : trees).map((tree) => element(
      "button", { type: "button", role: "tab", class: "plan", "aria-selected": String(tree.plan === shownPlan), onclick: () => {
        shownPlan = tree.plan;
        show();
      } }, `${tree.plan} · ${tree.cells} ${tree.cells === 1 ? "cell" : "cells"}`,
    )));
  }
  const tree = trees.find((each) => each.plan === shownPlan) || { plan: "", roots: [], numbers: {} };
  picture.show(tree, tree.numbers, outcome);
}

// Addresses that tell of the run, with the token: neither a stream nor a link can send a header.
const withToken = (path) => (token ? `${path}?token=${encodeURIComponent(token)}` : path);

function listen() {
  byId("export").href = withToken("export");
  const source = new EventSource(withToken("stream"));
  source.onmessage = (event) => take(JSON.parse(event.data));
  source.onerror = () => {
    const refused = source.readyState === EventSource.CLOSED && !message.start;
    byId("status").className = "pill lost";
    setText(byId("status"), refused ? "refused: open the address that the run has printed" : "the page has lost the run");
  };
}

byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

let redraw = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(redraw);
  redraw = requestAnimationFrame(() => message.start && show());
});

const saved = byId("run");
setInterval(showHealth, 1000);
if (saved) {
  byId("export").hidden = true;
  take({ ...JSON.parse(saved.textContent), whole: true, accepts: [] });
} else {
  listen();
}
