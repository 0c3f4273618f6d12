// Drawings with a time axis: a crosshair names the moment under the pointer, and dragging sets the range.
// data-from, data-to: the ends in ms; data-left, data-right: pixels beside the plot; data-set: the address to go to.
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

function say(svg, x, words) {
  let text = svg.querySelector(".cross-words");
  if (!text) {
    text = document.createElementNS(NS, "text");
    text.setAttribute("class", "cross-words lab2 halo");
    text.setAttribute("y", "11");
    svg.append(text);
  }
  const isRight = x > svg.viewBox.baseVal.width / 2;
  text.setAttribute("x", (x + (isRight ? -5 : 5)).toFixed(1));
  text.setAttribute("text-anchor", isRight ? "end" : "start");
  text.textContent = words;
}

function clear(chart) {
  for (const mark of chart.querySelectorAll(".cross, .cross-words, .cross-start")) mark.remove();
}

function valuesAt(chart, at) {
  const from = Number(chart.dataset.from), to = Number(chart.dataset.to);
  const said = [];
  for (const series of chart.querySelectorAll("[data-series]")) {
    const values = series.dataset.series.split(" ");
    const value = values[Math.min(values.length - 1, Math.max(0, Math.round(((at - from) / (to - from)) * (values.length - 1))))];
    if (value !== undefined && value !== "") said.push(`${series.dataset.name} ${value}`);
  }
  return said.join(" · ");
}

const shown = (at) => new Date(at).toISOString().slice(11, 16);
let start = null;

document.addEventListener("pointermove", (event) => {
  const chart = event.target.closest?.("[data-from]");
  for (const other of document.querySelectorAll("[data-from]:has(.cross)")) if (other !== chart) clear(other);
  if (!chart || event.pointerType === "touch") return;
  const svg = event.target.closest("svg");
  if (!svg) return;
  const { x, at, isInside } = placed(svg.closest("[data-from]").querySelector("svg") === svg ? chart : chart, event);
  if (!isInside) {
    clear(chart);
    return;
  }
  line(svg, "cross", x);
  const values = valuesAt(chart, at);
  say(svg, x, start ? `${shown(start.at)} to ${shown(at)}` : shown(at) + (values ? ` · ${values}` : ""));
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
