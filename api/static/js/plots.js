// uPlot, where zoom and a crosshair over many points matter: latency of an upstream, the chart of an SQL result.
// An element with data-plot holds its rows as a table; the library comes only where there is one.
const DRAWN = new WeakMap();

// Data is ink and grey: blue and orange are the sides of a comparison, red and amber call for somebody. Beyond two lines,
// and for the range before, the stroke tells them apart.
const LINES = ["ink", "grey", "ink dashed", "grey dashed", "ink dotted", "grey dotted"];
const DASHES = { dashed: [7, 4], dotted: [2, 2] };
function strokeOf(words) {
  const [ink, stroke = "solid"] = words.split(" ");
  return { stroke: resolved(ink === "grey" ? "text-3" : "text"), dash: DASHES[stroke], mark: stroke, width: stroke === "dotted" ? 1 : 1.25 };
}

// A range that is dragged over becomes the page's, where the page has one.
function lead(plot, address) {
  const [from, to] = [plot.select.left, plot.select.left + plot.select.width].map((x) => Math.round(plot.posToVal(x, "x")));
  if (plot.select.width < 6 || to <= from) return;
  const target = new URL(address, location.href);
  target.searchParams.set("from", new Date(from * 1e3).toISOString().replace(".000Z", "Z"));
  target.searchParams.set("to", new Date(to * 1e3).toISOString().replace(".000Z", "Z"));
  target.searchParams.delete("live");
  location.assign(target);
}

function resolved(name) {
  // light-dark() is resolved by the browser when it is used as a colour.
  const probe = document.createElement("span");
  probe.className = `probe probe-${name}`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

function rowsOf(holder) {
  const table = document.getElementById(holder.dataset.plot);
  const heads = [...table.querySelectorAll("thead th")];
  const names = heads.map((cell) => cell.textContent.trim());
  const columns = names.map(() => []);
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.children].forEach((cell, at) => {
      const value = cell.querySelector("data")?.value ?? cell.querySelector("time")?.dateTime ?? cell.dataset.value ?? cell.textContent.trim();
      columns[at]?.push(at === 0 ? Date.parse(value) / 1000 : value === "" ? null : Number(value));
    });
  }
  return { names, columns, lines: heads.map((cell) => cell.dataset.line ?? "") };
}

function load(address) {
  return new Promise((done, failed) => {
    if (window.uPlot) return done();
    const script = document.createElement("script");
    script.src = address;
    script.addEventListener("load", done);
    script.addEventListener("error", failed);
    document.head.append(script);
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = document.body.dataset.uplotCss;
    document.head.append(sheet);
  });
}

async function draw(holder) {
  await load(document.body.dataset.uplot);
  const { names, columns, lines } = rowsOf(holder);
  const usable = names.map((_, at) => at).filter((at) => at === 0 || columns[at].some((value) => Number.isFinite(value)));
  const strokes = usable.map((at, place) => strokeOf(lines[at] || LINES[(place + LINES.length - 1) % LINES.length]));
  const address = holder.dataset.set;
  DRAWN.get(holder)?.destroy();
  holder.replaceChildren();
  const zone = document.body.dataset.zone;
  // Swedes write dates as ISO 8601 does.
  const form = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  const clock = (second, long) => {
    const [day, hour] = form.format(second * 1e3).split(" ");
    return long ? day : hour;
  };
  const ink = { stroke: resolved("text-3"), grid: { stroke: resolved("line"), width: 1 }, ticks: { stroke: resolved("line") }, font: "11px sans-serif" };
  const plot = new window.uPlot({
    width: holder.clientWidth,
    height: Number(holder.dataset.tall || 220),
    cursor: { drag: { x: true, y: false, setScale: !address } },
    hooks: address ? { setSelect: [(drawn) => lead(drawn, address)] } : {},
    legend: { markers: { dash: (_, place) => strokes[place]?.mark ?? "solid" } },
    tzDate: (second) => window.uPlot.tzDate(new Date(second * 1e3), zone === "UTC" ? "Etc/UTC" : zone),
    axes: [{ ...ink, values: (_, marks, __, ___, step) => marks.map((second) => clock(second, step >= 86400)) }, { ...ink, size: 64 }],
    series: usable.map((at, place) => place === 0
      ? { label: zone, value: (_, second) => (second == null ? "" : form.format(second * 1e3)) }
      : { label: names[at], ...strokes[place], spanGaps: true, points: { show: columns[0].length < 40 } }),
  }, usable.map((at) => columns[at]), holder);
  DRAWN.set(holder, plot);
}

export function drawAll() {
  for (const holder of document.querySelectorAll("[data-plot]:not([hidden])")) if (!DRAWN.has(holder)) draw(holder);
}

document.addEventListener("gnomon:plot", () => {
  for (const holder of document.querySelectorAll("[data-plot]:not([hidden])")) draw(holder);
});

drawAll();
document.addEventListener("htmx:after:swap", () => drawAll());
document.addEventListener("gnomon:theme", () => {
  for (const holder of document.querySelectorAll("[data-plot]:not([hidden])")) draw(holder);
});
addEventListener("resize", () => {
  for (const holder of document.querySelectorAll("[data-plot]")) DRAWN.get(holder)?.setSize({ width: holder.clientWidth, height: Number(holder.dataset.tall || 220) });
});
