// Elements are made here and nowhere else: text goes in as text, so nothing that comes from a run
// can become markup.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((each) => each !== null && each !== undefined));
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

function setText(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

// Works as a button does: by mouse, by Enter, by the space bar.
function pressable(made, act) {
  made.setAttribute("tabindex", "0");
  made.setAttribute("role", "button");
  made.addEventListener("click", act);
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
  return made;
}
