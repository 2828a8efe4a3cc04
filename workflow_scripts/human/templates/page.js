"use strict";
// One page of tasks. Answers stay in the browser, and can be downloaded or copied at any time.
const data = JSON.parse(document.getElementById("data").textContent);
const tasks = data.tasks;
const $ = (id) => document.getElementById(id);
// A second tap of a double tap must not answer the next task.
const PAUSE = 350;

function stored(key, fallback) {
  try { return JSON.parse(localStorage.getItem(key)) ?? fallback; } catch { return fallback; }
}

function store(key, value) {
  try { localStorage.setItem(key, JSON.stringify(value)); return true; } catch { return false; }
}

function newWorker() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return "w-" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

const named = new URLSearchParams(location.search).get("worker");
const worker = named && /^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$/.test(named) ? named : stored("compclip worker", null) ?? newWorker();
const remembers = store("compclip worker", worker);
const place = "compclip " + data.batch + " " + worker;
// answers: task to {answer, revision}. spent: task to seconds seen.
const state = Object.assign({ answers: {}, spent: {}, begun: false }, stored(place, {}));

let at = 0;
let shownAt = 0;
let since = null;

const answered = () => tasks.filter((task) => task.id in state.answers).length;
const save = () => store(place, state);

function record(task) {
  const { answer, revision } = state.answers[task.id];
  const seconds = Math.round((state.spent[task.id] ?? 0) * 1000) / 1000;
  return { task_id: task.id, worker, answer, seconds, revision };
}

// Count the time that the task was visible.
function count() {
  if (since !== null && at < tasks.length) {
    const id = tasks[at].id;
    state.spent[id] = (state.spent[id] ?? 0) + (performance.now() - since) / 1000;
  }
  since = null;
}

function watch() {
  since = document.visibilityState === "visible" && state.begun && at < tasks.length ? performance.now() : null;
}

function status() {
  const n = answered();
  $("bar").value = n;
  $("progress").textContent = at < tasks.length && state.begun ? `${at + 1} of ${tasks.length}` : `${n} of ${tasks.length} done`;
  $("back").hidden = !state.begun || at === 0;
  $("download").hidden = n === 0;
  $("copy").hidden = n === 0 || !navigator.clipboard;
}

function show(index) {
  count();
  at = index;
  $("intro").hidden = state.begun;
  $("task").hidden = !state.begun || at >= tasks.length;
  $("end").hidden = !state.begun || at < tasks.length;
  if (!state.begun) { $("forgetful").hidden = remembers; status(); return; }
  if (at < tasks.length) {
    const task = tasks[at];
    for (const side of [1, 2, 3]) {
      if ($("picture" + side)) $("picture" + side).src = data.pictures[task.pictures[side - 1]];
      if ($("text" + side)) $("text" + side).textContent = task.texts[side - 1];
    }
    for (const button of document.querySelectorAll(".choice"))
      button.setAttribute("aria-pressed", String(state.answers[task.id]?.answer === button.dataset.answer));
    window.scrollTo(0, 0);
    $("question").focus({ preventScroll: true });
  } else $("thanks").focus({ preventScroll: true });
  shownAt = performance.now();
  status();
  watch();
}

function answer(value) {
  if (!state.begun || at >= tasks.length || performance.now() - shownAt < PAUSE) return;
  count();
  const id = tasks[at].id;
  const before = state.answers[id];
  if (!before || before.answer !== value) state.answers[id] = { answer: value, revision: before ? before.revision + 1 : 0 };
  save();
  show(at + 1);
}

const lines = () => tasks.filter((task) => task.id in state.answers).map((task) => JSON.stringify(record(task)) + "\n");

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines(), { type: "application/x-ndjson" }));
  link.download = `answers_${data.batch}_${worker}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function copy() {
  await navigator.clipboard.writeText(lines().join(""));
  $("copy").textContent = "Copied";
  setTimeout(() => { $("copy").textContent = "Copy answers"; }, 2000);
}

const agreed = () => !$("agree") || $("agree").checked;

function begin() {
  if (!state.begun && !agreed()) return;
  state.begun = true;
  save();
  const first = tasks.findIndex((task) => !(task.id in state.answers));
  show(first < 0 ? tasks.length : first);
}

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
  const value = data.keys[event.key] ?? data.keys[event.key.toLowerCase()];
  if (value && state.begun) { event.preventDefault(); answer(value); }
  else if (event.key === "Backspace" && state.begun && at > 0) { event.preventDefault(); show(at - 1); }
  else if (event.key === "Enter" && !state.begun && document.activeElement === document.body) { event.preventDefault(); begin(); }
});
for (const button of document.querySelectorAll(".choice")) button.addEventListener("click", () => answer(button.dataset.answer));
$("begin").addEventListener("click", begin);
$("back").addEventListener("click", () => show(at - 1));
$("download").addEventListener("click", download);
$("copy").addEventListener("click", copy);
if ($("agree")) {
  $("begin").disabled = !agreed();
  $("agree").addEventListener("change", () => { $("begin").disabled = !agreed(); });
}
document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") watch(); else { count(); save(); } });
window.addEventListener("pagehide", () => { count(); save(); });
// The same page in another tab shares its answers.
window.addEventListener("storage", (event) => { if (event.key === place) { Object.assign(state, stored(place, {})); status(); } });

$("others").hidden = !location.protocol.startsWith("http");
if (state.begun) begin(); else show(0);
