"use strict";
// One page of tasks. Answers stay in the browser until the server has them, and can always be downloaded.
const data = JSON.parse(document.getElementById("data").textContent);
const tasks = data.tasks;
const $ = (id) => document.getElementById(id);
// A second tap of a double tap must not answer the next task.
const PAUSE = 350;
const RETRY = [2, 5, 15, 60];

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
// answers: task to {answer, revision}. spent: task to seconds seen. sent: task to the last revision that was settled.
const state = Object.assign({ answers: {}, spent: {}, sent: {}, refused: {}, begun: false }, stored(place, {}));

const served = location.protocol === "http:" || location.protocol === "https:";
let noServer = !served;
let at = 0;
let shownAt = 0;
let since = null;
let sending = false;
let failures = 0;

const answered = () => tasks.filter((task) => task.id in state.answers).length;
const unsent = () => tasks.filter((task) => task.id in state.answers && state.sent[task.id] !== state.answers[task.id].revision);
const save = () => store(place, state);

function record(task) {
  const { answer, revision } = state.answers[task.id];
  const seconds = Math.round((state.spent[task.id] ?? 0) * 1000) / 1000;
  return { task_id: task.id, worker, answer, seconds, revision };
}

// The time that the task was before somebody's eyes.
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
  const left = unsent().length;
  $("sending").textContent = noServer || !left ? "" : failures ? `${left} not sent yet` : "";
  $("back").hidden = !state.begun || at === 0;
  $("download").hidden = n === 0;
  if (at < tasks.length) return;
  const refused = Object.keys(state.refused).length;
  $("kept").textContent = noServer
    ? "All answers are given. Download them with the button below and send the file to whoever asked you."
    : left
      ? "All answers are given, but not all are sent. Keep this page open, or download them with the button below."
      : refused
        ? `The server did not take ${refused} of the answers (${Object.values(state.refused)[0]}). Download them with the button below and send the file to whoever asked you.`
        : "All answers are saved. You can close this page.";
  $("others").hidden = noServer;
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
  send();
}

async function send() {
  if (noServer || sending) return;
  sending = true;
  try {
    for (let next = unsent()[0]; next; next = unsent()[0]) {
      const body = record(next);
      const reply = await fetch("answers", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
      });
      // A plain file server takes no answers: the download is the way.
      if ([404, 405, 501].includes(reply.status)) { noServer = true; break; }
      if (reply.status >= 500 || reply.status === 429) throw new Error(String(reply.status));
      if (!reply.ok) state.refused[next.id] = (await reply.json().catch(() => ({}))).error ?? `error ${reply.status}`;
      else delete state.refused[next.id];
      state.sent[next.id] = body.revision;
      failures = 0;
      save();
    }
  } catch {
    setTimeout(send, 1000 * RETRY[Math.min(failures++, RETRY.length - 1)]);
  } finally {
    sending = false;
    status();
  }
}

function download() {
  const lines = tasks.filter((task) => task.id in state.answers).map((task) => JSON.stringify(record(task)) + "\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
  link.download = `answers_${data.batch}_${worker}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function begin() {
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
document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") watch(); else { count(); save(); } });
window.addEventListener("pagehide", () => { count(); save(); });
window.addEventListener("online", send);
// The same page in another tab: its answers are this one's.
window.addEventListener("storage", (event) => { if (event.key === place) { Object.assign(state, stored(place, {})); status(); } });

if (state.begun) begin(); else show(0);
send();
