// Tables that are sorted by their heads and searched by their text.

const kFirstRows = 15, kMoreRows = 300;

/**
 * columns: { title, value(row): what is sorted by, cell(row): text or element, number: right-aligned }.
 * options: caption, sorted ([column, descending]), search (a placeholder), onpick(row), first (rows shown at first).
 */
function table(columns, rows, options = {}) {
  let [by, down] = options.sorted ?? [-1, false];
  let limit = options.first ?? kFirstRows, wanted = "";
  const body = el("tbody"), more = el("p", { class: "note" });
  const text = (row) => columns.map((column) => String(column.value(row) ?? "")).join(" ").toLowerCase();
  const heads = columns.map((column, i) => el("th", { scope: "col", class: column.number ? "number" : null },
    el("button", { type: "button", onclick: () => { down = by === i ? !down : Boolean(column.number); by = i; draw(); } }, column.title)));

  function listed() {
    const found = wanted ? rows.filter((row) => text(row).includes(wanted)) : [...rows];
    if (by < 0) return found;
    const value = columns[by].value;
    const compare = (a, b) => typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
    const missing = (a) => a === null || a === undefined;
    return found.sort((a, b) => {
      const x = value(a), y = value(b);
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      return down ? compare(y, x) : compare(x, y);
    });
  }
  function rowOf(row) {
    return el("tr", null, columns.map((column, i) => {
      const content = column.cell ? column.cell(row) : shown(column.value(row) ?? "");
      const picks = options.onpick && i === (options.pick ?? 0);
      return el("td", { class: [column.number && "number", column.kind].filter(Boolean).join(" ") || null },
        picks ? el("button", { type: "button", class: "quiet link", onclick: () => options.onpick(row) }, content) : content);
    }));
  }
  function draw() {
    heads.forEach((head, i) => i === by ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
    const found = listed();
    body.replaceChildren(...found.slice(0, limit).map(rowOf));
    more.replaceChildren();
    if (found.length > limit) {
      const step = Math.min(kMoreRows, found.length - limit);
      more.append(el("button", { type: "button", onclick: () => { limit += step; draw(); } }, `Show ${step.toLocaleString("en")} more`),
        ` of ${plural(found.length, "row")}`);
    } else if (wanted) more.append(found.length ? plural(found.length, "row") : "Nothing found");
  }
  const search = options.search && rows.length > 5 && el("div", { class: "tools" }, el("input", { type: "search", placeholder: options.search,
    "aria-label": options.search, oninput: (event) => { wanted = event.target.value.trim().toLowerCase(); draw(); } }));
  draw();
  return el("div", { class: "table" }, search || null, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.caption ?? "Table" },
    el("table", null, options.caption ? el("caption", null, options.caption) : null, el("thead", null, el("tr", null, heads)), body)), more);
}
