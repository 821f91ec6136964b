// The page: its controls, the socket, and the frames of the scene that is shown.
//
// Every change of a parameter is a new scene with a new number. What the server sends carries the
// number of its scene; nothing of an earlier scene is kept or drawn.

import { Chart, colourOf, short } from "./charts.js";
import { drawCircle, drawSquare, SphereView } from "./views.js";

const $ = (id) => document.getElementById(id);
const POST_EVERY = 40; // milliseconds
const CLOSED_FOR_OTHERS = 4001; // the server's code for a page that was used longest ago
const PER_SECOND = { Circle: 30, Sphere: 15, Torus: 15 }; // frames
const GROUPS = [
  ["Model", ["space", "drift", "beta", "kappa"]],
  ["Law at the start", ["start", "peaks", "separation", "concentration", "share", "mode", "amplitude"]],
  ["Tokens", ["tokens", "normalisation", "rng"]],
  ["Time", ["duration"]],
];
const LABELS = {
  space: "space", drift: "drift", beta: "β, inverse temperature", kappa: "κ, 1/noise", start: "law", peaks: "peaks",
  separation: "angle between peaks", concentration: "concentration", share: "mass of the first peak", mode: "degree",
  amplitude: "amplitude", tokens: "number", normalisation: "normalisation", rng: "seed", duration: "duration, in κ₁(β)",
};
const STEPS = { beta: 0.05, peaks: 1, separation: 0.05, concentration: 0.5, share: 0.05, mode: 1, tokens: 10, duration: 1 };
const LOGARITHMIC = new Set(["kappa", "amplitude"]);
const USED = {
  beta: (t) => t.drift !== "Kuramoto",
  peaks: (t) => t.start === "mixture",
  concentration: (t) => t.start === "mixture",
  separation: (t) => t.start === "mixture" && t.peaks !== "1",
  share: (t) => t.start === "mixture" && t.peaks !== "1",
  mode: (t) => t.start === "mode",
  amplitude: (t) => t.start === "mode",
  normalisation: (t) => t.space !== "Torus",
};
const WORDS = { Circle: "circle", Sphere: "sphere S²", Torus: "torus", mixture: "peaks", mode: "one mode", file: "file" };
const CURVES = {
  critical: ["onset of order", "ink", []],
  fold: ["fold: ordered states begin", "density", [8, 4]],
  transition: ["first-order transition", "tokens", [2, 3]],
};

let told = null; // what the server said first
let texts = {}; // the parameters as texts
let version = 0; // of the scene that the controls show
let run = null; // the scene that is drawn: { version, texts, layers: { density: { frames, ended } }, ... }
let diagrams = {}; // by name: { key, data }
let relative = false; // whether kappa is divided by its onset in the phase diagram
let socket = null, posting = 0, posted = 0, position = 0, playing = true, shown = -1, sphere = null, paused = false;
const charts = Object.fromEntries(["orders", "energies", "branches", "plane"].map((id) => [id, new Chart(document.querySelector(`#${id} canvas`))]));
const widgets = {};
const draws = []; // what was drawn, for tests and measurements: [time, version drawn, version wanted, frame]
const sends = []; // [time, version]
window.explorer = { draws, sends, get state() { return { version, run, texts, position, playing, diagrams, paused }; } };

// The socket -----------------------------------------------------------------------------------

function connect() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/socket`);
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => (typeof data === "string" ? hear(JSON.parse(data)) : keep(data));
  socket.onclose = ({ code, reason }) => {
    if (code === CLOSED_FOR_OTHERS) return pause(reason);
    say("The server does not answer; trying again.");
    stale();
    setTimeout(connect, 1500);
  };
}

function post() {
  const wait = posted + POST_EVERY - performance.now();
  if (posting) return;
  posting = setTimeout(() => {
    posting = 0;
    posted = performance.now();
    if (socket.readyState !== WebSocket.OPEN || paused) return;
    sends.push([posted, version]);
    if (sends.length > 1000) sends.shift();
    socket.send(JSON.stringify({ version, scene: texts }));
  }, Math.max(wait, 0));
}

function hear(message) {
  if (message.type === "hello") return greet(message);
  if (message.type === "paused") return pause(message.message);
  if (message.version !== version) return;
  ({ accepted, refused, ended, diagram })[message.type]?.(message);
}

function pause(why) {
  paused = true;
  $("paused").hidden = false;
  $("paused").firstElementChild.textContent = `Paused: ${why}`;
  stale();
}

function greet(message) {
  if (!told) {
    told = message;
    sphere = new SphereView(message.latitudes, message.longitudes, Uint8ClampedArray.from(message.colours));
    const given = Object.fromEntries(new URLSearchParams(location.search));
    const defaults = Object.fromEntries(Object.entries(told.parameters).map(([name, p]) => [name, p.default]));
    texts = { ...defaults, ...(location.search ? given : message.first) };
    build();
    restyle();
  }
  begin();
}

function begin() {
  version += 1;
  stale();
  post();
}

function accepted(message) {
  run = { ...message, texts: { ...texts }, layers: {} };
  for (const name of message.layers) run.layers[name] = { frames: [], ended: null };
  refused({ message: "" });
  if (playing) position = 0;
  shown = -1;
  const link = new URLSearchParams(message.link).toString();
  history.replaceState(null, "", link ? `?${link}` : location.pathname);
  for (const a of document.querySelectorAll("[data-file]")) {
    a.href = `export/${a.dataset.file}${link ? `?${link}` : ""}`;
    const layer = a.dataset.file.split(".")[0];
    a.toggleAttribute("aria-disabled", layer in { density: 0, tokens: 0 } && !(layer in run.layers));
  }
  $("scrub").max = Math.max(...Object.values(message.frames)) - 1;
  const t = run.texts, beta = t.drift === "Kuramoto" ? "" : `β = ${short(Number(t.beta))}, `;
  $("model").textContent = `${t.drift} on the ${WORDS[t.space]}, ${beta}κ = ${t.kappa === "inf" ? "∞" : short(Number(t.kappa))}`;
  $("show").classList.toggle("map", t.space !== "Circle");
  $("projection").hidden = t.space !== "Sphere";
  const keys = { plane: `${t.space} ${t.drift}`, branches: `${t.space} ${t.drift} ${beta}` };
  for (const [name, key] of Object.entries(keys)) {
    $(name).classList.toggle("stale", diagrams[name]?.key !== key);
    run[`key of ${name}`] = key;
  }
  note();
  drawDiagrams();
  say("computing");
}

function refused(message) {
  $("refused").hidden = !message.message;
  $("refused").textContent = message.message;
  document.querySelector("#show .busy").textContent = message.message ? "refused" : "computing";
  if (message.message) say("refused");
  for (const [name, widget] of Object.entries(widgets)) {
    const bad = message.message.split("\n").some((line) => line.startsWith(`${name}:`) || line.startsWith(`${name} `));
    widget.text?.setAttribute("aria-invalid", bad);
  }
}

function keep(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  if (!run || head.version !== version || head.version !== run.version) return;
  const frames = run.layers[head.layer].frames;
  let at = 4 + length;
  head.sizes.forEach((size, i) => {
    const values = head.coded ? new Uint8Array(buffer, at, size) : new Float32Array(buffer, at, size);
    at += values.byteLength;
    frames.push({ t: head.t[i], order: head.order[i], energy: head.energy[i], low: head.low[i], high: head.high[i], values });
  });
  for (const id of ["show", "orders", "energies"]) $(id).classList.remove("stale");
  if (!playing) shown = -1;
}

function ended(message) {
  run.layers[message.layer].ended = message;
  note();
}

function diagram(message) {
  if (message.message) {
    $(message.name).querySelector(".busy").textContent = message.message;
    return;
  }
  diagrams[message.name] = { key: run[`key of ${message.name}`], data: message.data, seconds: message.seconds };
  $(message.name).classList.remove("stale");
  drawDiagrams();
}

// What is of an earlier scene is grey from here on, and is not drawn again.
function stale() {
  for (const id of ["show", "orders", "energies"]) $(id).classList.add("stale");
}

function say(text) {
  if ($("status").textContent !== text) $("status").textContent = text;
}

function tell(id, lines) {
  $(id).querySelector(".notes").textContent = lines.join("\n");
}

function note() {
  const lines = [];
  for (const [name, { ended }] of Object.entries(run.layers)) {
    if (ended && !ended.complete) lines.push(`${name === "density" ? "Density" : "Tokens"}: ${ended.message}`);
  }
  const t = run.texts;
  if (t.normalisation !== "PostLN" && run.layers.density) lines.push(`The density is that of PostLN, the tokens are under ${t.normalisation}.`);
  if (t.kappa === "inf" && t.space === "Circle") lines.push("Without noise the density is followed along characteristics, and drawn with a bandwidth of 0.05.");
  if (t.drift === "SA") lines.push("SA has no free energy.");
  tell("show", lines);
  const all = Object.values(run.layers);
  if (all.every(({ ended }) => ended)) {
    const seconds = Math.max(...all.map(({ ended }) => ended.seconds || 0));
    say(`computed in ${seconds < 0.1 ? "less than 0.1" : seconds.toFixed(1)} s`);
  }
}

// Controls ---------------------------------------------------------------------------------------

function build() {
  const here = $("controls");
  here.replaceChildren();
  for (const [title, names] of GROUPS) {
    const group = element("fieldset", here);
    element("legend", group).textContent = title;
    for (const name of names) {
      const { form, words } = told.parameters[name];
      const widget = form.enum ? (form.enum.length > 4 ? list : choice)(name, form.enum, group) : number(name, form, group);
      widget.whole.title = words;
      widgets[name] = widget;
    }
  }
  choose($("projection"), "projection", ["globe", "map"], "globe", (value) => {
    sphere.projection = value;
    sphere.table = null;
    shown = -1;
  });
  choose($("scaled"), "scaled", ["κ", "κ/κ₁"], "κ", (value) => {
    relative = value !== "κ";
    drawDiagrams();
  });
  refresh();
}

function element(tag, parent, attributes = {}) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.append(made);
  return made;
}

function choose(parent, name, values, chosen, change) {
  return values.map((value) => {
    const label = element("label", parent);
    const input = element("input", label, { type: "radio", name, value });
    input.checked = value === chosen;
    input.onchange = () => change(value);
    label.append(WORDS[value] || value);
    return input;
  });
}

function choice(name, values, parent) {
  const whole = element("div", parent, { class: "choice", role: "radiogroup", "aria-label": LABELS[name] });
  const inputs = choose(whole, name, values, texts[name], (value) => set(name, value));
  return {
    whole,
    refresh() {
      for (const input of inputs) {
        input.checked = input.value === texts[name];
        if (input.value === "file") input.disabled = !told.file;
        if (input.value === "file" && told.file) input.parentElement.title = told.file;
      }
    },
  };
}

function list(name, values, parent) {
  const whole = element("div", parent, { class: "number alone" });
  element("label", whole, { for: name }).textContent = LABELS[name];
  const select = element("select", whole, { id: name });
  for (const value of values) element("option", select, { value }).textContent = value;
  select.onchange = () => set(name, select.value);
  return { whole, refresh: () => (select.value = texts[name]) };
}

function number(name, form, parent) {
  const bounded = form.maximum !== undefined;
  const whole = element("div", parent, { class: bounded ? "number" : "number alone" });
  element("label", whole, { for: name }).textContent = LABELS[name];
  const log = LOGARITHMIC.has(name);
  const to = log ? Math.log10 : (x) => x, from = log ? (x) => String(Number((10 ** x).toPrecision(3))) : (x) => String(Number(x.toFixed(4)));
  let range = null, infinite = null;
  if (bounded) {
    const step = log ? 0.01 : STEPS[name];
    range = element("input", whole, { type: "range", "aria-label": `${LABELS[name]}, slider`, min: to(form.minimum), max: to(form.maximum), step });
    range.oninput = () => set(name, from(Number(range.value)));
  }
  const text = element("input", whole, { type: "text", id: name, inputmode: "decimal", autocomplete: "off", spellcheck: "false" });
  text.onchange = () => set(name, text.value.trim().replace("∞", "inf"));
  if (name === "kappa") {
    const label = element("label", whole, { class: "infinite" });
    infinite = element("input", label, { type: "checkbox" });
    label.append("∞: no noise");
    let before = "0.6";
    infinite.onchange = () => {
      if (infinite.checked) before = texts.kappa;
      set("kappa", infinite.checked ? "inf" : before === "inf" ? "0.6" : before);
    };
  }
  return {
    whole, text, range,
    refresh() {
      const value = Number(texts[name]), infinity = texts[name] === "inf";
      if (text !== document.activeElement || text.value !== texts[name]) text.value = infinity ? "∞" : texts[name];
      if (range && range !== document.activeElement && texts[name] !== "" && Number.isFinite(value)) range.value = to(value);
      if (range && name === "kappa") range.disabled = infinity;
      if (infinite) infinite.checked = infinity;
    },
  };
}

function set(name, value) {
  texts = { ...texts, [name]: value };
  if (name === "start" && value === "file") texts.space = told.first.space || "Circle";
  if (texts.space === "Torus") texts.normalisation = "PostLN"; // the only one there
  refresh();
  begin();
}

function refresh() {
  for (const [name, widget] of Object.entries(widgets)) {
    widget.whole.hidden = USED[name] ? !USED[name](texts) : false;
    widget.refresh();
  }
}

// Drawing ----------------------------------------------------------------------------------------

const isStale = () => !run || run.version !== version;

// How many frames all layers have, or their last where they ended early.
function ready() {
  const all = Object.values(run.layers);
  if (all.some(({ frames }) => !frames.length)) return all.every(({ frames, ended }) => frames.length || ended) ? Math.max(...all.map(({ frames }) => frames.length)) : 0;
  const most = Math.max(...all.map(({ frames }) => frames.length));
  return Math.min(...all.map(({ frames, ended }) => (ended ? most : frames.length)));
}

const at = (layer, index) => run.layers[layer]?.frames[Math.min(index, run.layers[layer].frames.length - 1)];

let last = 0;
function tick(now) {
  requestAnimationFrame(tick);
  const passed = Math.min((now - last) / 1000, 0.25);
  last = now;
  if (isStale()) return;
  const count = ready();
  if (!count) return;
  if (playing) position = Math.min(position + passed * PER_SECOND[run.texts.space], count - 1);
  const index = Math.min(Math.floor(position), count - 1);
  if (index !== shown) draw(index);
}

function draw(index) {
  shown = index;
  draws.push([performance.now(), run.version, version, index]);
  if (draws.length > 5000) draws.shift();
  const density = at("density", index), tokens = at("tokens", index);
  if (run.texts.space === "Circle") drawCircle($("view"), density, tokens?.values);
  else if (run.texts.space === "Torus") drawSquare($("view"), density, tokens?.values, sphere.colours);
  else sphere.draw($("view"), density, tokens?.values);
  const t = (density || tokens).t > (tokens || density).t ? density.t : (tokens || density).t;
  $("scrub").value = index;
  $("clock").textContent = `t = ${t.toPrecision(4)}`;
  $("scale").textContent = density ? `largest density ${density.high.toPrecision(3)}` : "";
  $("order-density").textContent = density ? density.order.toFixed(3) : "–";
  $("order-tokens").textContent = tokens ? tokens.order.toFixed(3) : "–";
  drawOrders(density, tokens);
  drawEnergies(density, index);
  drawBranches(density || tokens);
  if (index === ready() - 1 || !playing) {
    $("view").setAttribute("aria-label", `t = ${t.toPrecision(3)}: order parameter of the density ${$("order-density").textContent}, of the tokens ${$("order-tokens").textContent}`);
  }
}

function drawOrders(density, tokens) {
  const chart = charts.orders.begin({ low: 0, high: run.t_end, label: "time t" }, { low: 0, high: 1, label: "order parameter" });
  for (const [name, { frames }] of Object.entries(run.layers)) {
    chart.curve(frames.map((f) => f.t), frames.map((f) => f.order), colourOf(name), { dash: name === "tokens" ? [6, 4] : [] });
  }
  if (tokens) chart.dot(tokens.t, tokens.order, colourOf("tokens"), 4);
  if (density) chart.dot(density.t, density.order, colourOf("density"), 5);
}

function drawEnergies(density, index) {
  const frames = (run.layers.density?.frames || []).filter((f) => f.energy !== null);
  const values = frames.map((f) => f.energy);
  $("energies").hidden = run.texts.drift === "SA" || !run.layers.density;
  if (!values.length || $("energies").hidden) return;
  const low = Math.min(...values), high = Math.max(...values), room = Math.max((high - low) * 0.08, 1e-3 * Math.abs(high) + 1e-6);
  const chart = charts.energies.begin({ low: 0, high: run.t_end, label: "time t" }, { low: low - room, high: high + room, label: "free energy F" });
  chart.curve(frames.map((f) => f.t), values, colourOf("density"));
  const now = frames.findLast((f) => f.t <= density.t) || frames[0];
  chart.dot(now.t, now.energy, colourOf("density"), 5);
  $("energy-density").textContent = now.energy.toPrecision(4);
}

// The diagram of this name, if it belongs to the scene that is shown.
const shownDiagram = (name) => (diagrams[name]?.key === run[`key of ${name}`] ? diagrams[name] : undefined);
const kappaNow = () => (run.texts.kappa === "inf" ? Infinity : Number(run.texts.kappa));

function drawBranches(state) {
  const found = shownDiagram("branches");
  if (!found) return;
  const [low, high] = found.data.span;
  const chart = charts.branches.begin({ low, high, log: true, label: "κ" }, { low: 0, high: 1, label: "order parameter" });
  for (const { kappa, order, stable } of found.data.stretches) {
    chart.curve(kappa, order, colourOf(stable ? "ink" : "soft"), stable ? { width: 2.5 } : { width: 1.5, dash: [5, 4] });
  }
  if (kappaNow() > low && kappaNow() < high) chart.upright(kappaNow(), colourOf("tokens"));
  if (state) chart.dot(kappaNow(), state.order, colourOf("tokens"));
}

// What kappa is divided by at a beta: 1, or the onset, log-linear between the points of its curve.
function unit(beta) {
  if (!relative) return 1;
  const { beta: xs, kappa: ys } = diagrams.plane.data.curves.critical;
  const i = Math.min(Math.max(xs.findIndex((x) => x >= beta), 1), xs.length - 1);
  const s = (beta - xs[i - 1]) / (xs[i] - xs[i - 1]);
  return ys[i - 1] ** (1 - s) * ys[i] ** s;
}

function drawPlane() {
  const found = shownDiagram("plane");
  if (!found) return;
  const { curves, tricritical, beta } = found.data;
  const scaled = Object.entries(curves).map(([name, c]) => [name, c.beta, c.kappa.map((kappa, i) => kappa / unit(c.beta[i]))]);
  const all = scaled.flatMap(([, , ys]) => ys);
  const [low, high] = relative ? [Math.min(...all) / 1.5, 3] : [Math.max(Math.min(...all) / 4, 0.01), Math.min(Math.max(...all) * 10, 1000)];
  const chart = charts.plane.begin({ low: beta[0], high: beta[1], label: "β" }, { low, high, log: true, label: relative ? "κ/κ₁" : "κ" });
  for (const [name, xs, ys] of scaled) chart.curve(xs, ys, colourOf(CURVES[name][1]), { dash: CURVES[name][2], width: name === "critical" ? 2.5 : 2 });
  if (tricritical) chart.dot(tricritical[0], tricritical[1] / unit(tricritical[0]), colourOf("ink"), 4);
  const now = run.texts.drift === "Kuramoto" ? (beta[0] + beta[1]) / 2 : Number(run.texts.beta);
  chart.dot(now, kappaNow() / unit(now), colourOf("tokens"));
  const legend = $("curves");
  legend.replaceChildren();
  for (const name of Object.keys(curves)) {
    const style = name === "critical" ? "ink" : name === "fold" ? "density dashed" : "tokens dotted";
    element("span", legend, { class: `key ${style}` }).textContent = CURVES[name][0];
  }
  element("span", legend, { class: "key dot" }).textContent = "you are here";
  charts.plane.canvas.setAttribute("aria-label", `phase diagram; you are at beta ${short(now)}, kappa ${short(kappaNow())}. Arrow keys move.`);
}

function drawDiagrams() {
  if (isStale()) return;
  for (const name of ["branches", "plane"]) tell(name, shownDiagram(name)?.data.warnings || []);
  drawPlane();
  drawBranches(at("density", Math.max(shown, 0)) || at("tokens", Math.max(shown, 0)));
}

function restyle() {
  const dark = document.documentElement.dataset.theme === "dark";
  const [density, tokens] = dark ? [told.palette[5], told.palette[4]] : [told.palette[0], told.palette[1]];
  document.documentElement.style.setProperty("--density", density);
  document.documentElement.style.setProperty("--tokens", tokens);
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-pressed", dark);
  shown = -1;
  if (run) drawDiagrams();
}

// Events -----------------------------------------------------------------------------------------

function go(beta, kappa) {
  const { form } = told.parameters.kappa;
  const near = Math.min(Math.max(kappa, form.minimum), form.maximum);
  texts = { ...texts, kappa: String(Number(near.toPrecision(3))) };
  if (texts.drift !== "Kuramoto") texts.beta = String(Number(beta.toFixed(2)));
  refresh();
  begin();
}

charts.plane.canvas.onclick = ({ offsetX, offsetY }) => {
  if (!diagrams.plane || !charts.plane.box) return;
  const [beta, kappa] = charts.plane.values(offsetX, offsetY);
  go(beta, kappa * unit(beta));
};
charts.plane.canvas.onkeydown = (event) => {
  const [across, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] || [0, 0];
  if (!across && !up) return;
  event.preventDefault();
  const { form } = told.parameters.beta;
  const beta = Math.min(Math.max(Number(texts.beta) + 0.05 * across, form.minimum), form.maximum);
  const kappa = texts.kappa === "inf" ? told.parameters.kappa.form.maximum : Number(texts.kappa);
  go(beta, kappa * 10 ** (0.02 * up));
};
$("view").onkeydown = (event) => {
  const turned = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
  if (!turned || run?.texts.space !== "Sphere") return;
  event.preventDefault();
  sphere.rotate(...turned);
  shown = -1;
};
$("view").onpointermove = (event) => {
  if (!event.buttons || run?.texts.space !== "Sphere" || sphere.projection !== "globe") return;
  sphere.rotate(-event.movementX / 150, event.movementY / 150);
  shown = -1;
};
function setPlaying(on) {
  playing = on;
  $("play").textContent = on ? "❚❚" : "▶";
  $("play").setAttribute("aria-label", on ? "pause" : "play");
}
$("play").onclick = () => {
  const over = run && !isStale() && position >= ready() - 1 && Object.values(run.layers).every(({ ended }) => ended);
  if (over) position = 0;
  setPlaying(over || !playing);
};
$("again").onclick = () => {
  position = 0;
  setPlaying(true);
};
$("scrub").oninput = () => {
  setPlaying(false);
  position = Number($("scrub").value);
  shown = -1;
};
$("theme").onclick = () => {
  const dark = document.documentElement.dataset.theme !== "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  restyle();
};
$("link").onclick = async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    say("link copied");
  } catch {
    say("the link is in the address bar");
  }
};
$("paused").querySelector("button").onclick = () => {
  paused = false;
  $("paused").hidden = true;
  if (socket.readyState === WebSocket.CLOSED) connect(); // and begins when it is greeted
  else begin();
};
document.addEventListener("click", (event) => {
  if (!$("export").contains(event.target) || event.target.dataset.file) $("export").open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") $("export").open = false;
});
window.onresize = () => {
  shown = -1;
  if (run) drawDiagrams();
};
window.onpopstate = () => location.reload();
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
matchMedia("(prefers-color-scheme: dark)").onchange = ({ matches }) => {
  document.documentElement.dataset.theme = matches ? "dark" : "light";
  if (told) restyle();
};
connect();
requestAnimationFrame(tick);
