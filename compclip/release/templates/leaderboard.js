"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const filters = document.getElementById("filters");
const two = document.getElementById("two");
const order = { column: "composes", descending: true };
const DIGITS = { composed: 0, scores: 1 };

// Rounded as in the report: half to even, and 0 without a sign.
const FORMATS = [0, 1].map(
  (digits) =>
    new Intl.NumberFormat("en", {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
      roundingMode: "halfEven",
      signDisplay: "negative",
      useGrouping: false,
    }),
);
const percent = (value, digits) => FORMATS[digits].format(100 * value).replace("-", "−");
// A space that does not break.
const interval = (low, high, digits) =>
  low === null ? "" : `[${percent(low, digits)},\u00a0${percent(high, digits)}]`;

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const chosen = () => DATA.compositions[filters.elements.composition.value];
const lineOf = (name) => chosen().lines.find((line) => line.name === name);
const valueOf = (line, column) => line.cells[column] && line.cells[column].value;

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

function heading(table, column, pairs) {
  const cell = element("th", "", { scope: "col" });
  if (order.column === column) cell.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
  const button = element("button", column === "name" ? "model" : column, { type: "button" });
  button.addEventListener("click", () => {
    order.descending = order.column === column ? !order.descending : column !== "name";
    order.column = column;
    showBoard();
    table.querySelector("th[aria-sort] button").focus();
  });
  cell.append(button, element("small", pairs));
  return cell;
}

function named(line) {
  const cell = element("th", line.name, { scope: "row" });
  for (const text of line.marks) {
    const kind = ["verified", "control"].includes(text) ? text : "caution";
    cell.append(" ", element("span", text, { class: `mark ${kind}` }));
  }
  return cell;
}

// A label is shown where there is no heading: on a narrow screen.
function labeled(label, ...contents) {
  const cell = element("td");
  cell.append(element("span", label, { class: "label" }), ...contents);
  return cell;
}

// Which pairs a column's intervals are for; one column has it in its name.
const pairsOf = ({ name, pairs }) => (name.endsWith(pairs) ? "" : `[${pairs}]`);

function score(line, column) {
  const of = line.cells[column.name];
  if (!of) return ["–"];
  const digits = DIGITS[column.table];
  const ends = interval(of.low, of.high, digits);
  // The value is in another column.
  if (column.name === "composes, new pairs") return [ends || "–"];
  return [percent(of.value, digits), element("small", ends)];
}

function showTable(kind, lines) {
  const table = document.getElementById(kind);
  const columns = DATA.columns.filter((column) => column.table === kind);
  const head = [heading(table, "name", "")];
  if (kind === "composed") head.push(element("th", "verdict", { scope: "col", class: "verdict" }));
  head.push(...columns.map((column) => heading(table, column.name, pairsOf(column))));
  table.tHead.rows[0].replaceChildren(...head);
  const rows = lines.map((line) => {
    const row = element("tr");
    row.append(named(line));
    if (kind === "composed") row.append(element("td", line.verdict, { class: "verdict" }));
    row.append(...columns.map((column) => labeled(`${column.name} ${pairsOf(column)}`, ...score(line, column))));
    return row;
  });
  table.tBodies[0].replaceChildren(...rows);
}

function showBoard() {
  const lines = chosen().lines;
  const shown = sorted(lines.filter(kept));
  for (const kind of Object.keys(DIGITS)) showTable(kind, shown);
  document.getElementById("count").textContent = `${shown.length} of ${lines.length} shown`;
}

function fillTwo(wanted) {
  const names = chosen().lines.toSorted((a, b) => a.control - b.control).map((line) => line.name);
  const taken = [];
  for (const [place, select] of [two.elements.a, two.elements.b].entries()) {
    const others = names.filter((name) => !taken.includes(name) && name !== wanted[1 - place]);
    const before = [wanted[place], select.value, ...others].find((name) => names.includes(name));
    select.replaceChildren(...names.map((name) => element("option", name)));
    select.value = before;
    taken.push(before);
  }
}

function difference(of, sign) {
  if (!of) return ["–"];
  const ends = of.new_pairs_low === null ? [null, null] : [sign * of.new_pairs_low, sign * of.new_pairs_high];
  const [low, high] = ends.toSorted((x, y) => x - y);
  const isClear = of.family === "primary" && of.p_holm !== null && of.p_holm < 0.05;
  const value = element(isClear ? "b" : "span", percent(sign * of.difference, 1));
  return [value, element("small", interval(low, high, 1))];
}

function probability(of) {
  if (!of) return "–";
  return of.family === "primary" && of.p_holm !== null ? of.p_holm.toFixed(4) : of.family;
}

function showTwo() {
  const [a, b] = [two.elements.a.value, two.elements.b.value].map(lineOf);
  const differences = chosen().differences.filter(
    (of) => (of.a === a.name && of.b === b.name) || (of.a === b.name && of.b === a.name),
  );
  const heads = ["", a.name, b.name, `${a.name} − ${b.name}`, "p (Holm)", "n"];
  const table = document.querySelector(".compared");
  table.tHead.rows[0].replaceChildren(...heads.map((text) => element("th", text, { scope: "col" })));
  const columns = DATA.columns.filter(({ name }) => a.cells[name] || b.cells[name]);
  const rows = columns.map((column) => {
    const of = differences.find((row) => `${row.measure}, ${row.split}` === column.name);
    const title = element("th", column.name, { scope: "row" });
    title.append(element("small", pairsOf(column)));
    const contents = [
      score(a, column),
      score(b, column),
      difference(of, of && of.a === a.name ? 1 : -1),
      [probability(of)],
      [of ? of.n.toLocaleString("en") : "–"],
    ];
    const row = element("tr");
    row.append(title, ...contents.map((content, place) => labeled(heads[place + 1], ...content)));
    return row;
  });
  table.tBodies[0].replaceChildren(...rows);
  const composition = filters.elements.composition.value;
  document.getElementById("link").href = `#compare=${a.name},${b.name}&composition=${composition}`;
}

// A link names two models: leaderboard.html#compare=A,B, and optionally &composition=C.
function show() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const composition = parameters.get("composition");
  if (Object.hasOwn(DATA.compositions, composition)) filters.elements.composition.value = composition;
  const wanted = parameters.has("compare") ? parameters.get("compare").split(",") : [];
  const unknown = wanted.filter((name) => name && !lineOf(name));
  const warning = document.getElementById("unknown");
  warning.textContent = `The link names ${unknown.join(", ")}, which this leaderboard does not have.`;
  warning.hidden = !unknown.length;
  showBoard();
  fillTwo(wanted);
  showTwo();
  if (wanted.some(Boolean)) document.getElementById("compare").scrollIntoView();
}

filters.addEventListener("input", () => {
  showBoard();
  fillTwo([]);
  showTwo();
});
filters.addEventListener("submit", (event) => event.preventDefault());
two.addEventListener("input", () => {
  showTwo();
  history.replaceState(null, "", document.getElementById("link").href);
});
addEventListener("hashchange", show);
show();
