// Decisions as a list, the newest first, and the reasons of the chosen one in numbers.

const MOST_MARKS = 400;
const LISTED = 60;

class Marks {
  constructor(list, detail, changed) {
    Object.assign(this, { list, detail, changed, all: [], chosen: null });
  }

  add(decisions, whole) {
    if (whole) {
      this.all = [];
      this.list.replaceChildren();
    }
    const last = this.all.length ? this.all[this.all.length - 1].id : -1;
    for (const each of decisions.filter((one) => one.id > last)) {
      this.all.push(each);
      this.list.prepend(this.item(each));
    }
    this.all.splice(0, Math.max(0, this.all.length - MOST_MARKS));
    while (this.list.children.length > LISTED) this.list.lastChild.remove();
  }

  item(each) {
    const choose = () => this.choose(each.id);
    return element("li", {}, element(
      "button", { type: "button", onclick: choose, "data-id": each.id, "aria-pressed": "false" },
      element("span", { class: "when" }, clockTime(each.at)),
      element("span", { class: each.bad ? "title bad" : "title" }, each.title),
      element("span", { class: "more" }, each.summary),
    ));
  }

  choose(id) {
    const found = this.all.find((each) => each.id === id);
    if (!found) return;
    this.chosen = id;
    for (const button of this.list.querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.dataset.id) === id));
    this.detail.replaceChildren(
      element("strong", {}, `${found.title}, ${clockTime(found.at)}`),
      fieldList(found.fields),
    );
    this.changed(id);
  }
}
