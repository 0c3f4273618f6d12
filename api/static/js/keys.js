// The keyboard. Off in fields and with modifiers; everything can be reached by Tab too.
import { copyText } from "./copy.js";
import { openFind } from "./find.js";
import { togglePause } from "./live.js";
import { undoRange } from "./ranges.js";
import { toggleTheme } from "./theme.js";

let leader = false;
let chosen = null;

function rows() {
  return [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("a") && row.offsetParent);
}

function step(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(chosen);
  const next = all[Math.min(Math.max(at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by, 0), all.length - 1)];
  chosen?.classList.remove("cursor");
  chosen = next;
  chosen.classList.add("cursor");
  chosen.querySelector("a").focus({ preventScroll: true });
  chosen.scrollIntoView({ block: "nearest" });
}

function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
  return Boolean(link);
}

function filterByCell() {
  const cell = (document.querySelector("[data-filter]:hover") ?? document.activeElement?.closest("[data-filter]") ?? chosen?.querySelector("[data-filter]"));
  if (cell) location.assign(cell.dataset.filter);
}

const keys = {
  "/": () => openFind(),
  j: () => step(1),
  k: () => step(-1),
  n: () => follow("[data-key=n]"),
  p: () => follow("[data-key=p]"),
  m: () => document.dispatchEvent(new CustomEvent("gnomon:masks")),
  f: filterByCell,
  "[": () => follow("[data-key=back]"),
  "]": () => follow("[data-key=forth]"),
  b: () => follow("[data-compare]"),
  Backspace: undoRange,
  t: toggleTheme,
  "?": () => document.getElementById("help")?.showModal(),
  c: () => {
    const report = document.getElementById("report");
    copyText(report ? report.textContent : location.href, document.querySelector("[data-copy=report]"));
  },
  " ": togglePause,
};

addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, select, [contenteditable], dialog[open]")) return;
  if (leader) {
    leader = false;
    if (follow(`nav [data-go="${CSS.escape(event.key)}"]`)) event.preventDefault();
    return;
  }
  if (event.key === "g") {
    leader = true;
    setTimeout(() => { leader = false; }, 1500);
    return;
  }
  if (event.key === " " && event.target !== document.body) return;
  if (event.key === "Escape") {
    follow("[data-key=esc]");
    return;
  }
  if (/^[1-5]$/.test(event.key) && follow(`[data-preset="${event.key}"]`)) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-act=help]")) document.getElementById("help")?.showModal();
  if (event.target.closest("[data-act=close]")) event.target.closest("dialog").close();
});

// The matrix: arrow keys move from cell to cell.
addEventListener("keydown", (event) => {
  const cell = event.target.closest?.(".mx td.h");
  if (!cell || !event.key.startsWith("Arrow")) return;
  const row = cell.parentElement;
  const at = [...row.children].indexOf(cell);
  let next = null;
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    const line = [...row.querySelectorAll("td.h a")];
    next = line[line.indexOf(event.target) + (event.key === "ArrowRight" ? 1 : -1)];
  } else {
    let other = row;
    do {
      other = event.key === "ArrowDown" ? other.nextElementSibling : other.previousElementSibling;
      next = other?.children[at]?.querySelector("a");
    } while (other && !next);
  }
  if (next) {
    event.preventDefault();
    next.focus();
  }
});
