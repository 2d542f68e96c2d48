// The history of plans, newest first: what each change kept, dropped and added; pin and undo.

class Plans {
  constructor(list, form, token) {
    Object.assign(this, { list, form, token, shape: "" });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send({ command: "pin", plan: byId("pin-plan").value.trim() });
    });
    for (const name of ["undo", "unpin"]) byId(name).addEventListener("click", () => this.send({ command: name }));
  }

  show(plans, accepts, takesNone, running) {
    const may = accepts && this.token ? accepts : [];
    this.form.hidden = !may.length;
    const why = may.length ? "" : accepts && accepts.length ? "To pin a plan or undo a change, open the address that the run has printed: it has the token." : takesNone || "";
    byId("no-commands").hidden = !why;
    setText(byId("no-commands"), why);
    byId("pin").disabled = !may.includes("pin");
    for (const name of ["undo", "unpin"]) byId(name).hidden = !may.includes(name);
    const shape = JSON.stringify([plans.map((each) => [each.at, each.plan, each.cells]), may, [...running]]);
    if (shape === this.shape) return;
    this.shape = shape;
    const latest = new Map(plans.map((each, place) => [each.plan, place]));
    const words = (each, place) => {
      if (latest.get(each.plan) !== place) return undefined;
      return running.get(each.plan) || (running.size && place === plans.length - 1 ? "being prepared" : undefined);
    };
    this.list.replaceChildren(...plans.map((each, place) => this.item(each, words(each, place), may)).reverse());
  }

  item(each, runs, may) {
    const pin = may.includes("pin")
      ? element("button", { type: "button", "aria-label": `Pin ${each.plan}`, onclick: () => this.send({ command: "pin", plan: each.plan }) }, "pin")
      : null;
    const chips = [["added", "+"], ["dropped", "−"], ["kept", "="]].flatMap(([kind, sign]) =>
      (each[kind] || []).map((streams) => element("span", { class: `chip ${kind}` }, `${sign} ${streams}`)));
    return element(
      "li", {},
      element("div", { class: "row" }, element("span", { class: "when" }, clockTime(each.at)), each.cells > 1 ? element("span", { class: "when" }, `in ${each.cells} cells`) : null, runs ? element("span", { class: `pill${runs.startsWith("runs") ? " running" : ""}` }, runs) : null, pin),
      element("div", { class: "plan" }, each.plan),
      chips.length ? element("div", { class: "chips", "aria-label": "stored joins that came, went and stayed" }, ...chips) : null,
    );
  }

  async send(command, answer = byId("command-answer")) {
    try {
      const reply = await fetch("command", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Penstock-Token": this.token },
        body: JSON.stringify(command),
      });
      setText(answer, reply.ok ? "sent; it counts from the next micro-batch on" : await reply.text());
    } catch (problem) {
      setText(answer, "the run cannot be reached");
    }
  }
}
