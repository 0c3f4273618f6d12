// uPlot, where zoom and a crosshair over many points matter: latency of an upstream, the chart of an SQL result.
// An element with data-plot holds its rows as a table; the library comes only where there is one.
const DRAWN = new WeakMap();


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
  const names = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
  const columns = names.map(() => []);
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.children].forEach((cell, at) => {
      const value = cell.querySelector("data")?.value ?? cell.querySelector("time")?.dateTime ?? cell.dataset.value ?? cell.textContent.trim();
      columns[at]?.push(at === 0 ? Date.parse(value) / 1000 : value === "" ? null : Number(value));
    });
  }
  return { names, columns };
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
  const { names, columns } = rowsOf(holder);
  const usable = names.map((_, at) => at).filter((at) => at === 0 || columns[at].some((value) => Number.isFinite(value)));
  const inks = ["text", "b", "a", "c4", "c5", "c2"];
  DRAWN.get(holder)?.destroy();
  holder.replaceChildren();
  const clock = (second, long) => {
    const iso = new Date(second * 1e3).toISOString();
    return long ? iso.slice(0, 10) : iso.slice(11, 16);
  };
  const ink = { stroke: resolved("text-3"), grid: { stroke: resolved("line"), width: 1 }, ticks: { stroke: resolved("line") }, font: "11px sans-serif" };
  const plot = new window.uPlot({
    width: holder.clientWidth,
    height: Number(holder.dataset.tall || 220),
    tzDate: (second) => window.uPlot.tzDate(new Date(second * 1e3), "Etc/UTC"),
    axes: [{ ...ink, values: (_, marks, __, ___, step) => marks.map((second) => clock(second, step >= 86400)) }, { ...ink, size: 64 }],
    series: usable.map((at, place) => place === 0
      ? { label: "UTC", value: (_, second) => (second == null ? "" : new Date(second * 1e3).toISOString().slice(0, 16).replace("T", " ")) }
      : { label: names[at], stroke: resolved(inks[(place - 1) % inks.length]), width: 1.25, points: { show: columns[0].length < 40 } }),
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
