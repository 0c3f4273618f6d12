// Drawings with a time axis: a crosshair names the moment under the pointer and the values there; dragging sets the range.
// data-from, data-to: the ends in ms; data-left, data-right: pixels beside the plot; data-set: the address to go to.
// Inside, one element for each quantity: data-series (values at even steps, blank = unknown), data-before (the same in the
// range before), data-unit, data-y (where its strip begins); data-bars where values fill their steps and are no points.
function placed(chart, event) {
  const box = chart.getBoundingClientRect();
  const left = Number(chart.dataset.left || 0), right = Number(chart.dataset.right || 0);
  const plot = box.width - left - right;
  const x = Math.min(Math.max(event.clientX - box.left - left, 0), plot);
  const from = Number(chart.dataset.from), to = Number(chart.dataset.to);
  return { x: x + left, at: from + (x / plot) * (to - from), isInside: event.clientX - box.left >= left - 4 && event.clientX - box.left <= box.width - right + 4 };
}

const NS = "http://www.w3.org/2000/svg";
function line(svg, name, x) {
  let found = svg.querySelector(`.${name}`);
  if (!found) {
    found = document.createElementNS(NS, "line");
    found.setAttribute("class", name);
    found.setAttribute("y1", "14");
    found.setAttribute("y2", String(svg.viewBox.baseVal.height - 18));
    svg.append(found);
  }
  found.setAttribute("x1", x.toFixed(1));
  found.setAttribute("x2", x.toFixed(1));
}

function say(svg, x, y, words) {
  const text = document.createElementNS(NS, "text");
  text.setAttribute("class", "cross-words lab2 halo");
  text.setAttribute("y", String(y));
  const isRight = x > svg.viewBox.baseVal.width / 2;
  text.setAttribute("x", (x + (isRight ? -5 : 5)).toFixed(1));
  text.setAttribute("text-anchor", isRight ? "end" : "start");
  text.textContent = words;
  svg.append(text);
}

function clear(chart) {
  for (const mark of chart.querySelectorAll(".cross, .cross-words, .cross-start")) mark.remove();
}

function valueAt(text, place, isBars) {
  const values = text.split(" ");
  const step = isBars ? Math.floor(place * values.length) : Math.round(place * (values.length - 1));
  return values[Math.min(Math.max(step, 0), values.length - 1)];
}

// What each quantity is at a place from 0 to 1, beside its strip.
function sayValues(chart, svg, x, place) {
  for (const { dataset } of chart.querySelectorAll("[data-series]")) {
    const isBars = dataset.bars !== undefined;
    const now = valueAt(dataset.series, place, isBars);
    const before = dataset.before ? valueAt(dataset.before, place, isBars) : "";
    const said = `${now ? `${now}${dataset.unit}` : "unknown"}${before ? ` · before ${before}` : ""}`;
    say(svg, x, Number(dataset.y) + 10, said);
  }
}

const hours = new Intl.DateTimeFormat("en-GB", { timeZone: document.body.dataset.zone, hour: "2-digit", minute: "2-digit" });
const shown = (at) => hours.format(at);
let start = null;

document.addEventListener("pointermove", (event) => {
  const chart = event.target.closest?.("[data-from]");
  for (const other of document.querySelectorAll("[data-from]:has(.cross)")) if (other !== chart) clear(other);
  if (!chart || event.pointerType === "touch") return;
  const svg = event.target.closest("svg");
  if (!svg) return;
  const { x, at, isInside } = placed(chart, event);
  for (const words of chart.querySelectorAll(".cross-words")) words.remove();
  if (!isInside) {
    clear(chart);
    return;
  }
  line(svg, "cross", x);
  say(svg, x, svg.viewBox.baseVal.height - 4, start ? `${shown(start.at)} to ${shown(at)}` : shown(at));
  const from = Number(chart.dataset.from), to = Number(chart.dataset.to);
  if (!start) sayValues(chart, svg, x, (at - from) / (to - from));
});

document.addEventListener("pointerdown", (event) => {
  const chart = event.target.closest?.("[data-set]");
  const svg = event.target.closest?.("svg");
  if (!chart || !svg || event.button !== 0 || event.pointerType === "touch") return;
  const found = placed(chart, event);
  if (!found.isInside) return;
  start = { ...found, chart };
  line(svg, "cross-start", found.x);
  event.preventDefault();
});

document.addEventListener("pointerup", (event) => {
  if (!start) return;
  const { chart } = start;
  const end = placed(chart, event);
  const [from, to] = [start.at, end.at].sort((a, b) => a - b);
  const wide = Math.abs(end.x - start.x);
  start = null;
  clear(chart);
  if (wide < 6) return;
  const address = new URL(chart.dataset.set, location.href);
  const iso = (at) => new Date(Math.round(at / 1000) * 1000).toISOString().replace(".000Z", "Z");
  address.searchParams.set("from", iso(from));
  address.searchParams.set("to", iso(to));
  address.searchParams.delete("live");
  location.assign(address);
});
