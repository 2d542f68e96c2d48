// Cells side by side: a table while they are few, else the busiest and how load is spread.

const ORIGINS = { new: "the start", live: "memory", replayed: "memory, caught up", restored: "the checkpoint" };

function showCells(cells) {
  const summary = byId("cells-summary");
  if (!cells.count) {
    setText(summary, "No cells yet.");
    byId("cells-load").replaceChildren();
    byId("cells-table").replaceChildren();
    return;
  }
  const words = [`${cells.count.toLocaleString("en")} ${cells.count === 1 ? "cell" : "cells"}`];
  if (cells.count > 1) words.push(`the busiest has ${threeDigits(cells.skew)} times the mean load`);
  if (cells.plans.length > 1) words.push(`${cells.plans.length} different plans`);
  if (cells.shown.length < cells.count) {
    const [least, , middle, , most] = cells.quantiles.rows;
    words.push(`rows per cell ${short(least)} to ${short(most)}, median ${short(middle)}`);
    words.push(`the ${cells.shown.length} busiest are listed`);
  }
  setText(summary, words.join(" · "));
  byId("cells-load").replaceChildren(...(cells.count > 1 ? [loadBars(cells.load)] : []));
  const columns = [
    ["cell", (each) => String(each.cell)], ["rows", (each) => short(each.rows)], ["results", (each) => short(each.results)],
    ["late", (each) => short(each.late)], ["state", (each) => bytes(each.state_bytes)],
    ["engine", (each) => span(each.engine_seconds)], ["engine came from", (each) => ORIGINS[each.origin] || each.origin], ["plan", (each) => each.plan],
  ];
  showTable(byId("cells-table"), columns.map(([name]) => name), cells.shown.map((each) => columns.map(([, write]) => write(each))), new Set([7]));
}

function loadBars(load) {
  const [width, height] = [Math.min(760, load.length * 44), 46];
  const most = Math.max(...load, 1e-9);
  const step = width / load.length;
  const bars = load.map((value, place) => {
    const tall = Math.max(1, (height * value) / most);
    return drawn("rect", { class: place === 0 ? "top" : "", x: place * step + 1, y: height - tall, width: Math.max(1, step - 2), height: tall });
  });
  return drawn("svg", { class: "bars", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Load of the cells, the busiest first" }, ...bars);
}

// Rows of texts; cells that are there are filled anew, so a table in use does not flicker.
function showTable(table, names, rows, texts) {
  const heading = names.join("\u0000");
  if (table.dataset.heading !== heading) {
    table.dataset.heading = heading;
    const row = element("tr", {}, ...names.map((name, place) => element("th", { scope: "col", class: texts.has(place) ? "text" : false }, name)));
    table.replaceChildren(element("thead", {}, row), element("tbody"));
  }
  const body = table.tBodies[0];
  while (body.rows.length > rows.length) body.lastChild.remove();
  while (body.rows.length < rows.length) body.append(element("tr", {}, ...names.map((_, place) => element("td", { class: texts.has(place) ? "text" : false }))));
  rows.forEach((row, place) => row.forEach((text, column) => {
    const cell = body.rows[place].cells[column];
    setText(cell, text);
    if (texts.has(column)) cell.title = text;
  }));
}
