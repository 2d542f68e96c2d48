// Numbers for people: short, with a unit.

function short(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  for (const [unit, scale] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (size >= scale) return `${threeDigits(value / scale)} ${unit}`;
  }
  return size >= 100 || Number.isInteger(value) ? String(Math.round(value)) : threeDigits(value);
}

function threeDigits(value) {
  const size = Math.abs(Number(value.toPrecision(3)));
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  for (const [unit, scale] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (value >= scale) return `${threeDigits(value / scale)} ${unit}`;
  }
  return `${Math.round(value)} B`;
}

function span(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${threeDigits(seconds * 1000)} ms`;
  if (seconds < 60) return `${threeDigits(seconds)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

function share(value) {
  return `${threeDigits(100 * value)} %`;
}

function perSecond(value) {
  return `${short(value)}/s`;
}

function clockTime(seconds) {
  const moment = new Date(seconds * 1000);
  return Number.isNaN(moment.getTime()) ? "–" : moment.toLocaleTimeString([], { hour12: false });
}

// A field of an event, by what its name says it is.
function fieldText(name, value) {
  if (typeof value !== "number") return String(value);
  if (/bytes|memory/.test(name)) return bytes(value);
  if (/(^|_)(cpu|share|completion|allowance)(_|$)/.test(name) && value <= 10) return share(value);
  if (/seconds|staleness|horizon/.test(name)) return span(value);
  if (/^(cost|credit)$/.test(name)) return `${Number(value.toPrecision(3))} CPU s`;
  return Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));
}

// All fields of a value, nested ones below their names.
function fieldList(fields) {
  const list = element("dl", { class: "fields" });
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === "" || (typeof value === "object" && !Object.keys(value).length)) continue;
    const inside = typeof value === "object" ? fieldList(value) : fieldText(name, value);
    list.append(element("dt", {}, name.replaceAll("_", " ")), element("dd", {}, inside));
  }
  return list;
}
