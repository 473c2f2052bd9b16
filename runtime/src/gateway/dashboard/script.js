"use strict";
// The run as it goes on. A snapshot comes once a second; what is drawn is the newest. What a run that was restarted no longer
// knows is drawn as this page has seen it.

const KEY = "headway-admin-token";
const SILENCE_MS = 10_000;
const RETRY_MS = [1000, 2000, 5000];
const BARS = 60;
const MOST_STEPS = 2048;

const $ = (id) => document.getElementById(id);
const steps = new Map();
let refusals = null;
let before = [];
let connection = null;

// ---- words and numbers

const count = new Intl.NumberFormat("en");
const rounded = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const NONE = "–";
const forms = {
  count: (value) => count.format(value),
  plain: (value) => String(value),
  text: (value) => String(value),
  share: (value) => `${(value * 100).toFixed(1)}%`,
  decimal: (value) => (Math.abs(value) < 1000 ? rounded.format(value) : count.format(Math.round(value))),
  seconds: (value) => `${rounded.format(value)} s`,
};

const at = (value, path) => path.split(".").reduce((found, name) => found?.[name], value);

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function clock(date) {
  return date.toLocaleTimeString("en-GB");
}

function span(seconds) {
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

// ---- the state, said once where it changes

let said = "";
function say(kind, text) {
  if (said === kind + text) return;
  said = kind + text;
  $("status").dataset.kind = kind;
  $("status").textContent = text;
}

function state(snapshot) {
  const { error, ending, guard } = snapshot.state;
  if (error) return ["bad", `the run cannot go on: ${error}`];
  if (ending) return ["warn", "the run is ending"];
  if (guard?.deviating) return ["warn", "running, outside its envelope"];
  if (snapshot.paused) return ["warn", "an operator has paused the run"];
  return ["good", "running"];
}

// ---- drawing

function make(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const LEFT = 38, RIGHT = 8, TOP = 8, BOTTOM = 20;

/// The frame of a chart: its size, its axis, and where a height between 0 and 1 lies.
function frame(id, about) {
  const svg = $(id);
  const { width, height } = svg.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", about);
  const floor = height - BOTTOM;
  svg.replaceChildren(make("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: floor, y2: floor }));
  return {
    svg, floor, from: LEFT, to: width - RIGHT,
    x: (part) => LEFT + part * (width - RIGHT - LEFT),
    y: (part) => floor - part * (floor - TOP),
    label: (x, y, text, anchor) => svg.append(make("text", { x, y, "text-anchor": anchor }, text)),
  };
}

function scale(values) {
  const low = Math.min(0, ...values), high = Math.max(...values, low + 1e-9);
  const top = high > 0 && low === 0 ? high : high + (high - low) * 0.05;
  return { low, high: top, part: (value) => (value - low) / (top - low || 1) };
}

function curve(id, names, about, empty) {
  const list = [...steps.values()].filter((step) => names.every((name) => Number.isFinite(step[name])));
  const chart = frame(id, list.length ? about(list) : empty);
  if (!list.length) return chart.label(chart.from, chart.floor - 8, empty, "start"), list;
  const all = list.flatMap((step) => names.map((name) => step[name]));
  const { low, high, part } = scale(all);
  const first = list[0].step, last = list.at(-1).step;
  const x = (step) => chart.x(last > first ? (step - first) / (last - first) : 0.5);
  names.forEach((name, index) => {
    const points = list.map((step) => `${x(step.step).toFixed(1)},${chart.y(part(step[name])).toFixed(1)}`);
    chart.svg.append(make("polyline", { class: index ? "faint" : "line", points: points.join(" ") }));
    if (list.length === 1) {
      chart.svg.append(make("circle", { class: "dot", cx: x(first), cy: chart.y(part(list[0][name])), r: 2.5 }));
    }
  });
  chart.label(chart.from - 6, chart.y(1) + 4, rounded.format(high), "end");
  chart.label(chart.from - 6, chart.floor + 4, rounded.format(low), "end");
  chart.label(chart.from, chart.floor + 15, `step ${first}`, "start");
  if (last > first) chart.label(chart.to, chart.floor + 15, `step ${last}`, "end");
  return list;
}

function drawSteps() {
  const last = (list, name) => rounded.format(list.at(-1)[name]);
  const reward = curve("c-reward", ["reward_mean"],
    (list) => `Mean reward of ${list.length} steps; the last is ${last(list, "reward_mean")}.`, "no step yet");
  write($("t-reward"), reward.length ? `last ${last(reward, "reward_mean")}` : "");
  const lag = curve("c-lag", ["staleness_head_mean", "staleness_head_max"],
    (list) => `Mean and largest staleness of ${list.length} steps; the last mean is ${last(list, "staleness_head_mean")}.`,
    "no step yet");
  write($("t-lag"), lag.length
    ? `mean of the last step ${last(lag, "staleness_head_mean")}, largest (dashed) ${last(lag, "staleness_head_max")}` : "");
}

function drawStaleness(snapshot) {
  const list = snapshot.staleness;
  const total = list.reduce((sum, [, samples]) => sum + samples, 0);
  const above = list.filter(([value]) => value > snapshot.state.bound).reduce((sum, [, samples]) => sum + samples, 0);
  const about = total ? `${count.format(total)} samples, ${count.format(above)} above the bound` : "";
  write($("t-staleness"), about && `${about}, since the process began`);
  const spelled = list.map(([value, samples]) => `${value}: ${samples}`).join(", ");
  const chart = frame("c-staleness", total ? `Samples by staleness in versions: ${spelled}.` : "no sample yet");
  if (!total) return chart.label(chart.from, chart.floor - 8, "no sample yet", "start");
  const most = Math.max(...list.map(([, samples]) => samples));
  const last = Math.max(list.at(-1)[0], Math.min(snapshot.state.bound, 64), 4);
  const width = 1 / (last + 1);
  for (const [value, samples] of list) {
    const top = chart.y(samples / most);
    chart.svg.append(make("rect", {
      class: "rect", x: chart.x((value + 0.1) * width), y: top,
      width: Math.max(1, chart.x(0.8 * width) - chart.from), height: Math.max(1, chart.floor - top),
    }));
  }
  const bound = (snapshot.state.bound + 1) * width;
  if (bound <= 1) {
    chart.svg.append(make("line", { class: "bound", x1: chart.x(bound), x2: chart.x(bound), y1: chart.y(1), y2: chart.floor }));
  }
  chart.label(chart.from - 6, chart.y(1) + 4, count.format(most), "end");
  const every = Math.max(1, Math.ceil((last + 1) / 10));
  for (let value = 0; value <= last; value += every) {
    chart.label(chart.x((value + 0.5) * width), chart.floor + 15, String(value), "middle");
  }
}

/// The bars of this process of the run, each with its place before now, and those of earlier ones that this page has seen.
function bars(now) {
  const { bar_sec: seconds, bars: own } = refusals;
  const earlier = before.map(({ at, counts }) => [Math.floor((now - at) / 1000 / seconds), ...counts]);
  return [...earlier, ...own].filter(([age]) => age < BARS);
}

function addRefused(told, now) {
  // Another process counts from its own beginning.
  if (refusals && told.began_ms !== refusals.began_ms) {
    const seen = refusals.bars.map(([age, ...counts]) => ({ at: refusals.at - age * refusals.bar_sec * 1000, counts }));
    before = [...before, ...seen].filter(({ at }) => now - at < BARS * told.bar_sec * 1000);
  }
  refusals = { ...told, at: now };
}

function drawRefused(now) {
  const all = bars(now);
  const sums = [1, 2].map((index) => all.reduce((sum, bar) => sum + bar[index], 0));
  const chart = frame("c-refused", `In the last ten minutes: ${sums[0]} answers with 429, ${sums[1]} with 503.`);
  const heights = new Map();
  for (const [age, one, other] of all) heights.set(age, (heights.get(age) ?? 0) + one + other);
  const most = Math.max(1, ...heights.values());
  const base = new Map();
  for (const [age, ...counts] of all) {
    const left = chart.x((BARS - 1 - age) / BARS), wide = (chart.to - chart.from) / BARS - 1;
    counts.forEach((value, index) => {
      if (!value) return;
      const below = base.get(age) ?? 0;
      const top = chart.y((below + value) / most), height = chart.y(below / most) - top;
      chart.svg.append(make("rect", { class: index ? "r503" : "rect", x: left, y: top, width: Math.max(1, wide), height }));
      base.set(age, below + value);
    });
  }
  chart.label(chart.from - 6, chart.y(1) + 4, sums[0] + sums[1] ? count.format(most) : "", "end");
  chart.label(chart.from, chart.floor + 15, "10 min ago", "start");
  chart.label(chart.to, chart.floor + 15, "now", "end");
}

// ---- a snapshot

function drawReplicas(snapshot) {
  const learner = snapshot.state.learner_version;
  const items = snapshot.replicas.map(({ replica, version, up, syncing }) => {
    const item = document.createElement("li");
    const held = document.createElement("b");
    held.textContent = `v${version}`;
    const behind = learner - version;
    const words = [up ? "" : "down", syncing === "idle" ? "" : syncing, up && behind > 0 ? `${behind} behind` : ""];
    item.className = up ? (behind > 0 ? "behind" : "") : "down";
    item.append(`replica ${replica} `, held, words.filter(Boolean).map((word) => ` ${word}`).join(","));
    return item;
  });
  const list = $("replicas");
  if (list.textContent !== items.map((item) => item.textContent).join("")) list.replaceChildren(...items);
  write($("gate"), snapshot.state.closed ? "new requests get a 503 now" : "");
}

function drawGuard({ guard }) {
  $("guard").hidden = !guard;
  if (!guard) return;
  const { windows, windows_outside: outside, deviations, deviating, rolled_back: back, last } = guard;
  const words = [deviating ? "outside its envelope" : "inside its envelope",
    `${count.format(outside)} of ${count.format(windows)} windows outside`, `deviations: ${count.format(deviations)}`];
  write($("t-guard"), words.concat(back ? ["rolled back"] : []).join(", "));
  const table = $("readings");
  table.hidden = !last;
  const row = (reading) => {
    const line = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = reading.metric;
    line.append(name);
    line.className = reading.windows_outside ? "outside" : "";
    for (const value of [reading.value, reading.low, reading.high, reading.windows_outside]) {
      line.insertCell().textContent = value === null ? NONE : rounded.format(value);
    }
    return line;
  };
  table.tBodies[0].replaceChildren(...(last?.readings ?? []).map(row));
}

function show(snapshot) {
  const now = Date.now();
  $("run").classList.remove("old");
  for (const element of document.querySelectorAll("[data-field]")) {
    const value = at(snapshot, element.dataset.field);
    const form = forms[element.dataset.as ?? "count"];
    element.dataset.raw = value ?? "";
    write(element, value === null || value === undefined ? NONE : form(value));
  }
  for (const meter of document.querySelectorAll("[data-meter]")) {
    meter.querySelector("i").style.width = `${100 * (at(snapshot, meter.dataset.meter) ?? 0)}%`;
  }
  for (const link of document.querySelectorAll("[data-queue]")) {
    const { samples, max_size: most } = snapshot[link.dataset.queue];
    link.querySelector("i").style.width = `${Math.min(100, (100 * samples) / Math.max(1, most))}%`;
    link.querySelector(".fill").classList.toggle("full", samples >= most);
  }
  for (const step of snapshot.steps) steps.set(step.step, step);
  while (steps.size > MOST_STEPS) steps.delete(steps.keys().next().value);
  addRefused(snapshot.refusals, now);
  drawReplicas(snapshot);
  drawGuard(snapshot.state);
  drawSteps();
  drawStaleness(snapshot);
  drawRefused(now);
  say(...state(snapshot));
  document.title = `v${snapshot.state.learner_version} · ${span(snapshot.state.time_sec)} · Headway`;
  $("run").dataset.seen = String(Number($("run").dataset.seen ?? 0) + 1);
}

const heard = {
  history({ steps: past }) {
    steps.clear();
    for (const step of past) steps.set(step.step, step);
  },
  snapshot: show,
  silent: ({ reason }) => lost(reason),
  ended({ error }) {
    $("run").classList.add("old");
    say(error ? "bad" : "warn", error ? `the run has ended: ${error}` : `the run ended at ${clock(new Date())}`);
  },
};

// ---- the stream

class Refused extends Error {}

function lost(why) {
  $("run").classList.add("old");
  connection.since ??= new Date();
  if (!connection.over) say("bad", `disconnected since ${clock(connection.since)}${why ? `: ${why}` : ""}`);
}

async function listen(mine) {
  const aborter = new AbortController();
  mine.abort = () => aborter.abort();
  let timer = setTimeout(mine.abort, SILENCE_MS);
  try {
    const headers = { Authorization: `Bearer ${mine.token}` };
    const response = await fetch("dashboard/events", { headers, cache: "no-store", signal: aborter.signal });
    if (response.status === 401) throw new Refused();
    if (!response.ok) throw new Error((await response.json()).error.message);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(mine.abort, SILENCE_MS);
      text += value;
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        const [name, data] = event.split("\n").map((line) => line.slice(line.indexOf(": ") + 2));
        if (mine !== connection) return;
        if (name === "snapshot") {
          mine.tries = 0;
          mine.since = null;
        }
        mine.over = name === "ended";
        heard[name]?.(JSON.parse(data));
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

async function connect(token) {
  const mine = { token, tries: 0, since: null, over: false, abort() {} };
  connection?.abort();
  connection = mine;
  $("login").hidden = true;
  $("run").hidden = false;
  $("leave").hidden = false;
  say("off", "connecting");
  while (mine === connection) {
    let why = "";
    try {
      await listen(mine);
    } catch (error) {
      if (mine !== connection) return;
      if (error instanceof Refused) return ask("That is not the token of this run.");
      why = error.name === "AbortError" || error instanceof TypeError ? "" : error.message;
    }
    if (mine !== connection) return;
    lost(why);
    const pause = RETRY_MS[Math.min(mine.tries, RETRY_MS.length - 1)];
    mine.tries += 1;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

function ask(wrong) {
  connection?.abort();
  connection = null;
  sessionStorage.removeItem(KEY);
  steps.clear();
  refusals = null;
  before = [];
  $("run").hidden = true;
  $("leave").hidden = true;
  $("login").hidden = false;
  say("off", "not connected");
  document.title = "Headway";
  $("wrong").textContent = wrong;
  $("token").value = "";
  $("token").focus();
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = $("token").value.trim();
  $("token").value = "";
  // No header could carry it, and no token is such.
  if (!/^[\x21-\x7e]+$/.test(token)) return ask("That is not the token of this run.");
  $("wrong").textContent = "";
  sessionStorage.setItem(KEY, token);
  connect(token);
});
$("leave").addEventListener("click", () => ask(""));

const kept = sessionStorage.getItem(KEY);
if (kept) connect(kept);
else ask("");
