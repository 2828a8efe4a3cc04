"use strict";
// Shows judged images, some at a time; the filters are in the address, so that a view can be linked to.
const STEP = 60;
const form = document.getElementById("filters"), list = document.getElementById("entries");
const count = document.getElementById("count"), more = document.getElementById("more");
const loaded = new Map(), judges = Number(list.dataset.judges);
// Whether most judges agree; the count is -1 if there was nothing to choose.
const most = (number) => Number(2 * number > judges);
const votes = (number) => `${number} of ${judges} judge${judges > 1 ? "s" : ""}`;
let rows = [], shown = 0;

function received(name, data) {
  loaded.set(name, data);
  if (form.composition.value === name) show();
}

function load() {
  const name = form.composition.value;
  if (loaded.has(name)) return show();
  count.textContent = "Loading …";
  const script = document.createElement("script");
  script.src = `entries/${encodeURIComponent(name)}.js`;
  script.onerror = () => { count.textContent = `Cannot read ${script.src}; run the workflow again.`; };
  document.head.append(script);
}

function fill(select, values) {
  const wanted = select.dataset.wanted ?? select.value;
  delete select.dataset.wanted;
  select.replaceChildren(new Option("all", ""), ...values.map((value) => new Option(value)));
  select.value = values.includes(wanted) ? wanted : "";
}

function show() {
  const data = loaded.get(form.composition.value), { split, pair } = data.prompts;
  fill(form.generator, Object.keys(data.generators));
  fill(form.pair, [...new Set(pair)].filter(Boolean).sort());
  const wanted = Object.fromEntries(new FormData(form));
  rows = [];
  for (const [name, columns] of Object.entries(data.generators)) {
    if (wanted.generator && wanted.generator !== name) continue;
    columns.prompt.forEach((prompt, row) => {
      if ((!wanted.split || split[prompt] === wanted.split) && (!wanted.pair || pair[prompt] === wanted.pair)
        && (!wanted.hit || most(columns.hits[row]) === Number(wanted.hit))
        && (!wanted.right || (columns.right[row] >= 0 && most(columns.right[row]) === Number(wanted.right)))) rows.push([prompt, name, row]);
    });
  }
  // The images of one prompt stand together.
  rows.sort((a, b) => a[0] - b[0]);
  const total = (key, kept) => rows.reduce((sum, [, name, row]) => sum + kept(data.generators[name][key][row]), 0);
  const asked = total("right", (number) => Number(number >= 0));
  const figures = [rows.length, total("hits", most), total("right", most), asked].map((number) => number.toLocaleString("en"));
  count.textContent = `${figures[0]} images, ${figures[1]} hits; adjective right for ${figures[2]} of ${figures[3]}`;
  history.replaceState(null, "", `#${new URLSearchParams(Object.entries(wanted).filter(([, value]) => value))}`);
  list.replaceChildren();
  shown = 0;
  add();
}

function element(tag, name, ...children) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...children);
  return made;
}

function tag(text) {
  const made = element("span", "tag", text);
  made.dir = "ltr";
  return made;
}

function verdict(kind, ...words) {
  return element("p", kind, element("span", "verdict", ...words));
}

function card(data, [prompt, name, row]) {
  const columns = data.generators[name], pair = data.prompts.pair[prompt];
  const hit = most(columns.hits[row]), right = columns.right[row];
  const verdicts = [verdict(hit ? "hit" : "miss",
    `Caption ${hit ? "✓ hit" : "✗ miss"} (${votes(columns.hits[row])}); mean rank ${columns.rank[row]} of ${columns.candidates}`)];
  const named = element("b", "", element("bdi", "", pair));
  // A noun may have no other adjective, and a prompt no pair.
  if (right >= 0) verdicts.push(verdict(most(right) ? "hit" : "miss", "Adjective of ", named, ` ${most(right) ? "✓ right" : "✗ wrong"} (${votes(right)})`));
  else if (pair) verdicts.push(verdict("", "Adjective of ", named, ": no other to choose"));
  const text = data.prompts.text[prompt];
  const image = new Image();
  image.loading = "lazy";
  image.alt = `${name}: ${text.map(([word]) => word).join("")}`;
  image.src = (columns.prefix + columns.path[row]).split("/").map(encodeURIComponent).join("/");
  const words = text.map(([text, kind]) => kind ? element("mark", kind, text) : text);
  const caption = element("p", "", tag(data.prompts.split[prompt]), " ", ...words);
  // The tag, which has a direction of its own, does not decide the caption's.
  caption.dir = "auto";
  return element("article", "entry",
    element("figure", `picture ${hit ? "hit" : "miss"}`, image),
    element("div", "",
      element("p", "", element("b", "", name)),
      ...verdicts,
      caption,
      element("p", "soft", tag("image"), " ", element("bdi", "", data.prompts.image[prompt]))));
}

function add() {
  const data = loaded.get(form.composition.value);
  list.append(...rows.slice(shown, shown + STEP).map((row) => card(data, row)));
  shown = Math.min(shown + STEP, rows.length);
  more.hidden = shown === rows.length;
}

for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
  const select = form.elements[name];
  if (!select) continue;
  select.dataset.wanted = value;
  if ([...select.options].some((option) => option.value === value)) select.value = value;
}
form.addEventListener("change", load);
// Observed again each time, because the end may still be visible.
const end = new IntersectionObserver(([seen]) => {
  if (!seen.isIntersecting || more.hidden) return;
  add();
  end.unobserve(more);
  end.observe(more);
}, { rootMargin: "600px" });
end.observe(more);
load();
