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
    for (const each of decisions) {
      const place = this.all.findLastIndex((one) => one.id === each.id);
      const item = this.item(each);
      if (place < 0) {
        this.all.push(each);
        this.list.prepend(item);
      } else {
        this.all[place] = each;
        const shown = this.list.querySelector(`[data-id="${Number(each.id)}"]`);
        if (shown) shown.parentElement.replaceWith(item);
      }
    }
    this.all.splice(0, Math.max(0, this.all.length - MOST_MARKS));
    while (this.list.children.length > LISTED) this.list.lastChild.remove();
  }

  item(each) {
    const choose = () => this.choose(each.id);
    return element("li", {}, element(
      "button", { type: "button", onclick: choose, "data-id": each.id, "aria-pressed": String(each.id === this.chosen) },
      element("span", { class: "when" }, clockTime(each.at)),
      element("span", { class: `title${each.bad ? " bad" : ""}${each.minor ? " minor" : ""}` }, each.cells > 1 ? `${each.title} in ${each.cells} cells` : each.title),
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
