"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const filters = document.getElementById("filters");
const two = document.getElementById("two");
const order = { column: null, descending: true };

const percent = (value, digits = 1) =>
  value === null || value === undefined ? "–" : (100 * value).toFixed(digits).replace("-", "−");
const interval = (low, high, digits = 1) =>
  low === null || high === null ? "" : `[${percent(low, digits)}, ${percent(high, digits)}]`;

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const chosen = () => DATA.compositions[filters.elements.composition.value];
const columnsOf = (lines) => Object.keys(lines[0].cells);
const valueOf = (line, column) => (column === null ? null : line.cells[column] && line.cells[column].value);

function kept(line) {
  const { text, verified, weights, controls } = filters.elements;
  return (
    line.name.toLowerCase().includes(text.value.trim().toLowerCase()) &&
    (line.control ? controls.checked : !verified.checked || line.verified) &&
    (!weights.checked || line.control || line.judge_weights === "none")
  );
}

function sorted(lines) {
  const sign = order.descending ? -1 : 1;
  if (order.column === "name") return lines.toSorted((a, b) => sign * a.name.localeCompare(b.name));
  // Lines without a value come last in both directions.
  return lines.toSorted((a, b) => {
    const [x, y] = [valueOf(a, order.column), valueOf(b, order.column)];
    return x === null || y === null ? (x === null) - (y === null) : sign * (x - y);
  });
}

function heading(column, title) {
  const cell = element("th", "", { scope: "col" });
  if (order.column === column) cell.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
  const button = element("button", title, { type: "button" });
  button.addEventListener("click", () => {
    order.descending = order.column === column ? !order.descending : column !== "name";
    order.column = column;
    showBoard();
    document.querySelector(".board th[aria-sort] button").focus();
  });
  cell.append(button);
  return cell;
}

function named(line) {
  const cell = element("th", line.name, { scope: "row" });
  if (line.verified) cell.append(element("span", "verified", { class: "mark verified" }));
  if (line.judge_weights && line.judge_weights !== "none")
    cell.append(element("span", line.judge_weights, { class: "mark weights" }));
  if (line.control) cell.append(element("span", "control", { class: "mark" }));
  return cell;
}

function scoreCell(of, composed) {
  if (!of) return element("td", "–");
  const cell = element("td", percent(of.value, composed ? 0 : 1));
  const ends = composed
    ? [interval(of.same_pairs_low, of.same_pairs_high, 0), interval(of.new_pairs_low, of.new_pairs_high, 0)]
    : [interval(of.new_pairs_low, of.new_pairs_high)];
  for (const text of ends) cell.append(element("small", text));
  return cell;
}

function showBoard() {
  const lines = chosen().lines;
  const columns = columnsOf(lines);
  if (order.column !== "name" && !columns.includes(order.column)) order.column = columns[0];
  const head = document.querySelector(".board thead tr");
  head.replaceChildren(heading("name", "model"), element("th", "verdict", { scope: "col" }));
  head.append(...columns.map((column) => heading(column, column)));
  const shown = sorted(lines.filter(kept));
  document.querySelector(".board tbody").replaceChildren(
    ...shown.map((line) => {
      const row = element("tr");
      row.append(named(line), element("td", line.verdict));
      row.append(...columns.map((column) => scoreCell(line.cells[column], column.startsWith("composed"))));
      return row;
    }),
  );
  document.getElementById("count").textContent = `${shown.length} of ${lines.length} shown`;
}

function fillTwo() {
  const names = chosen().lines.toSorted((a, b) => a.control - b.control).map((line) => line.name);
  for (const [key, place] of [["a", 0], ["b", 1]]) {
    const select = two.elements[key];
    const before = names.includes(select.value) ? select.value : names[Math.min(place, names.length - 1)];
    select.replaceChildren(...names.map((name) => element("option", name)));
    select.value = before;
  }
}

function showTwo() {
  const [a, b] = [two.elements.a.value, two.elements.b.value];
  const rows = chosen().differences.filter((of) => (of.a === a && of.b === b) || (of.a === b && of.b === a));
  document.querySelector(".differences tbody").replaceChildren(
    ...rows.map((of) => {
      const sign = of.a === a ? 1 : -1;
      const known = of.new_pairs_low !== null;
      const ends = known ? [sign * of.new_pairs_low, sign * of.new_pairs_high].sort((x, y) => x - y) : [null, null];
      const row = element("tr");
      const primary = of.family === "primary" && of.p_holm !== null;
      const value = element("td");
      value.append(element(primary && of.p_holm < 0.05 ? "b" : "span", percent(sign * of.difference)), element("small", interval(...ends)));
      const p = primary ? of.p_holm.toFixed(4) : of.family;
      row.append(element("th", of.measure, { scope: "row" }), element("td", of.split), value);
      row.append(element("td", p), element("td", of.n.toLocaleString("en")));
      return row;
    }),
  );
}

filters.addEventListener("input", () => {
  showBoard();
  fillTwo();
  showTwo();
});
filters.addEventListener("submit", (event) => event.preventDefault());
two.addEventListener("input", showTwo);
showBoard();
fillTwo();
showTwo();
