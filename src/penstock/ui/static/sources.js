// Sources side by side: what comes, how far each has got, what did not get in and why.

const REASONS = ["late", "no event time", "unreadable"];
// A share of dropped rows from which somebody should have a look: a few late ones are nothing.
const MANY = 0.01;

function showSources({ sources, status }, table) {
  const now = isOver(status) ? "rows at the end" : "rows now";
  const others = [...new Set(sources.flatMap((each) => Object.keys(each.dropped)))].filter((reason) => !REASONS.includes(reason));
  const reasons = [...REASONS, ...others];
  const columns = [
    ["source", (each) => each.name], [now, (each) => perSecond(each.rate)], ["rows in all", (each) => short(each.rows)],
    ["newest event", (each) => eventTime(each.newest)], ["last rows came", (each) => `${each.silent === null ? "" : "SILENT since "}${each.last === null ? "the start" : clockTime(each.last)}`],
    ["backlog", (each) => (each.backlog === null ? "unknown" : `${short(each.backlog)} rows`)],
    ...reasons.map((reason) => [reason, (each) => withShare(each.dropped[reason] || 0, each.rows)]),
    ["filtered", (each) => withShare(each.filtered, each.rows)],
  ];
  if (sources.some((each) => Object.keys(each.skipped).length)) columns.push(["files left out", skippedFiles]);
  showTable(table, columns.map(([name]) => name), sources.map((each) => columns.map(([, write]) => write(each))), new Set([0]));
  sources.forEach((each, place) => {
    const { cells } = table.tBodies[0].rows[place];
    reasons.forEach((reason, column) => {
      const count = each.dropped[reason] || 0;
      cells[6 + column].classList.toggle("bad", count >= MANY * each.rows && count > 0);
      cells[6 + column].classList.toggle("warn", count < MANY * each.rows && count > 0);
    });
    cells[4].classList.toggle("bad", each.silent !== null);
  });
}

function isOver(status) {
  return status === "failed" || status === "stopped";
}

function withShare(count, rows) {
  if (!count) return "0";
  const part = rows > 0 ? (100 * count) / rows : 0;
  const text = part >= 0.1 ? part.toFixed(1) : part >= 0.001 ? part.toFixed(3) : "under 0.001";
  return `${short(count)} (${text} %)`;
}

function skippedFiles({ skipped }) {
  return Object.entries(skipped).map(([reason, count]) => `${short(count)} ${reason}`).join(", ") || "0";
}

function droppedInAll(sources) {
  return sources.reduce((sum, each) => sum + Object.values(each.dropped).reduce((one, other) => one + other, 0), 0);
}

function eventTime(milliseconds) {
  if (milliseconds === null) return "none";
  const moment = new Date(milliseconds);
  return Number.isNaN(moment.getTime()) ? String(milliseconds) : moment.toISOString().slice(0, 19).replace("T", " ");
}

// Longer than that behind the clock, event times are not those of now: a replay, or made up.
const LONGEST_LAG = 7 * 86400;

// What a person asks first, in words; `now` is the run's clock, null for a run that is over.
function healthWords({ status, sources, last_batch: last, watermark }, now) {
  const words = [];
  const age = now === null || last === null ? null : Math.max(0, now - last);
  if (status === "idle") words.push(["", `Idle: all input is taken${age === null ? "" : `, the last batch was ${span(age)} ago`}`]);
  else if (age !== null) words.push([age > 60 ? "bad" : "", `The last batch was ${span(age)} ago`]);
  if (watermark !== null && watermark !== undefined) {
    const newest = Math.max(...sources.map((each) => each.newest).filter((each) => each !== null));
    const behind = [];
    if (Number.isFinite(newest)) behind.push(`${span(Math.max(0, (newest - watermark) / 1000))} behind the newest row`);
    const lag = now === null ? null : now - watermark / 1000;
    if (lag !== null && lag >= 0 && lag < LONGEST_LAG) behind.push(`${span(lag)} behind the clock`);
    words.push(["", `Watermark ${eventTime(watermark)} UTC${behind.length ? `, ${behind.join(", ")}` : ""}`]);
  } else if (last !== null && sources.some((each) => each.newest !== null)) {
    words.push(["", "No watermark: nothing is late, and windows keep their rows"]);
  }
  const told = sources.filter((each) => each.backlog !== null);
  if (told.length) words.push(["", `Backlog ${short(told.reduce((sum, each) => sum + each.backlog, 0))} rows`]);
  for (const each of sources.filter((one) => one.silent !== null)) {
    const since = each.last === null ? "it has sent nothing" : `its last rows came at ${clockTime(each.last)}`;
    words.push(["bad", `All state waits for ${each.name}: ${since}, ${span(each.silent)} of event time behind. idle says how long to wait`]);
  }
  return words;
}
