// A statement of one's own: Ctrl+Enter runs it, Esc ends it (the server kills it), the result is a table or a file.
let running = null;

const form = () => document.querySelector("form[data-sql]");
const say = (text) => {
  const place = document.getElementById("sql-words");
  if (place) place.textContent = text;
};

function paramsOf(found) {
  const address = new URL(location.href);
  const params = {};
  for (const [, name] of found.querySelector("textarea").value.matchAll(/\{\s*(\w+)\s*:[^}]+\}/g)) {
    const value = address.searchParams.get(name);
    if (value !== null) params[name] = value;
    else if (name === "from") params[name] = found.dataset.from;
    else if (name === "to") params[name] = found.dataset.to;
  }
  return params;
}

async function ask(found, format) {
  running?.abort();
  const mine = (running = new AbortController());
  say("Asking…");
  found.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(found.dataset.sql, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ sql: found.querySelector("textarea").value, params: paramsOf(found), format }),
      signal: mine.signal,
    });
    if (!answer.ok) {
      const problem = await answer.json();
      document.getElementById("sql-panel").hidden = true;  // rows of another statement answer nothing here
      say(problem.detail ?? problem.title);
    } else if (format === "json") {
      show(await answer.json());
    } else {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await answer.blob());
      link.download = `gnomon.${format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      say("Saved as a file.");
    }
  } catch (error) {
    if (running !== mine) return;  // another one was begun in its place, and has the word
    document.getElementById("sql-panel").hidden = true;
    say(error.name === "AbortError" ? "Ended." : "The server did not answer to its end.");
  } finally {
    if (running === mine) {
      running = null;
      found.removeAttribute("aria-busy");
    }
  }
}

const MAX_SHOWN = 200;
const isNumber = (type) => /^(Nullable\()?(U?Int|Float|Decimal)/.test(type);

function show(said) {
  const { columns, items, statistics: read } = said;
  const table = document.createElement("table");
  table.id = "sql-table";
  const head = table.createTHead().insertRow();
  for (const { name, type } of columns) {
    const cell = document.createElement("th");
    cell.textContent = name;
    cell.title = type;
    if (isNumber(type)) cell.className = "num";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const item of items.slice(0, MAX_SHOWN)) {
    const row = body.insertRow();
    for (const { name, type } of columns) {
      const cell = row.insertCell();
      const value = item[name];
      cell.textContent = value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
      if (isNumber(type)) cell.className = "num";
    }
  }
  const place = document.getElementById("sql-result");
  place.replaceChildren(table);
  document.getElementById("sql-panel").hidden = false;
  const cut = items.length > MAX_SHOWN ? `, the first ${MAX_SHOWN} shown` : "";
  say(`${items.length.toLocaleString("en-US")} rows${cut} · ${read.seconds} s · read ${read.read_rows.toLocaleString("en-US")} rows`);
  const chart = document.getElementById("sql-chart");
  chart.hidden = !(columns.length > 1 && /DateTime/.test(columns[0].type) && columns.slice(1).some((column) => isNumber(column.type)) && items.length > 1);
  if (!chart.hidden) document.dispatchEvent(new CustomEvent("gnomon:plot"));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-format]");
  if (button) ask(form(), button.dataset.format);
  const word = event.target.closest("[data-insert]");
  if (word && form()) insert(form().querySelector("textarea"), word.dataset.insert);
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-sql]")) return;
  event.preventDefault();
  const address = new URL(location.href);
  address.searchParams.set("q", event.target.querySelector("textarea").value);
  history.replaceState(null, "", address);
  ask(event.target, "json");
});

function insert(area, text, from = area.selectionStart) {
  area.setRangeText(text, from, area.selectionEnd, "end");
  area.focus();
}

addEventListener("keydown", (event) => {
  const found = event.target.closest?.("form[data-sql]");
  if (event.key === "Escape" && running) running.abort();
  if (!found) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) found.requestSubmit();
  // Completion: Ctrl+Space finishes the word before the cursor, again and again through all that fit.
  if (event.key === " " && event.ctrlKey) {
    event.preventDefault();
    complete(found);
  }
});

let round = null;
function complete(found) {
  const area = found.querySelector("textarea");
  const before = area.value.slice(0, area.selectionStart);
  if (!round || round.end !== area.selectionStart) {
    const stem = before.match(/[\w.]*$/)[0];
    const fits = found.dataset.words.split(" ").filter((word) => word.startsWith(stem) && word !== stem);
    round = { start: before.length - stem.length, fits, at: -1, end: area.selectionStart };
  }
  if (!round.fits.length) return;
  round.at = (round.at + 1) % round.fits.length;
  area.setRangeText(round.fits[round.at], round.start, area.selectionStart, "end");
  round.end = area.selectionStart;
}
