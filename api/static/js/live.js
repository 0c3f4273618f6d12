// Live or paused. One stream per tab: the element #live holds it, its messages name panels, and each panel fetches itself.
// Pausing ends the stream and shows the moment; a hidden tab ends it too. A stream that breaks, or is refused, says so.
const words = (id, text) => {
  const place = document.getElementById(id);
  if (place) place.textContent = text;
};

const button = () => document.querySelector("[data-live]");
const clock = () => new Date().toISOString().slice(11, 19);
let isPaused = false;
const RETRY_MS = 4000;

function show(state, text) {
  const found = button();
  if (!found) return;
  found.dataset.live = state;
  found.setAttribute("aria-pressed", String(state === "on"));
  words("live-words", text);
}

export function togglePause() {
  const found = button();
  if (!found) return;
  const address = new URL(location.href);
  if (!document.getElementById("live")) {
    // Nothing runs yet: live is part of the address.
    address.searchParams.set("live", "1");
    location.assign(address);
    return;
  }
  isPaused = !isPaused;
  if (isPaused) show("off", `Paused ${clock()}`);
  else show("on", "Live");
  renew();
  if (!isPaused) refreshAll();
}

// An element holds one stream in its life: a new one is a new element. The stream of the old one would run on until its
// next message, so it is ended here.
let connection = null;
function renew() {
  const stream = document.getElementById("live");
  const address = stream.dataset.stream;
  const fresh = document.createElement("div");
  fresh.id = "live";
  fresh.hidden = true;
  fresh.dataset.stream = address;
  fresh.setAttribute("hx-swap", "none");
  if (!isPaused) fresh.setAttribute("hx-sse:connect", address);
  stream.replaceWith(fresh);
  connection?.reader?.cancel();
  connection?.abortController.abort();
  connection = null;
  window.htmx.process(fresh);
}

function refreshAll() {
  for (const panel of document.querySelectorAll("[data-on]")) window.htmx.trigger(panel, "gnomon:refresh");
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-live]")) togglePause();
});
const lost = () => {
  if (!isPaused) show("lost", "Paused, reconnecting");
};
document.addEventListener("htmx:sse:error", lost);

// A first connection that fails is not tried again by htmx.
let again = 0;
function refused(event) {
  if (event.target.id !== "live" || isPaused || again) return;
  lost();
  again = setTimeout(() => {
    again = 0;
    if (!isPaused) renew();
  }, RETRY_MS * (1 + Math.random()));
}
document.addEventListener("htmx:response:error", refused);
document.addEventListener("htmx:error", refused);
document.addEventListener("htmx:sse:after:connection", (event) => {
  connection = event.detail.connection;
  if (event.detail.connection.status === 200 && button()?.dataset.live === "lost") {
    show("on", "Live");
    refreshAll();
  }
});

// A message names what is new. Each panel that waits for it is fetched at most once in 2 s, and never under the pointer.
const due = new Map();
function fetchLater(panel) {
  if (due.has(panel)) return;
  const since = Date.now() - Number(panel.dataset.fetched || 0);
  due.set(panel, setTimeout(() => {
    due.delete(panel);
    if (!panel.isConnected || isPaused) return;
    if (document.hidden) {
      panel.dataset.missed = "";
      return;
    }
    if (panel.matches(":hover") && panel.dataset.still !== undefined) {
      offerNew(panel);
      return;
    }
    panel.dataset.fetched = String(Date.now());
    window.htmx.trigger(panel, "gnomon:refresh");
  }, Math.max(0, 2000 - since)));
}

// Rows never move under the pointer: what is new waits behind a button.
function offerNew(panel) {
  let offer = panel.querySelector(".offer");
  const n = Number(offer?.dataset.n || 0) + 1;
  if (!offer) {
    offer = document.createElement("button");
    offer.className = "btn sm offer";
    offer.addEventListener("click", () => window.htmx.trigger(panel, "gnomon:refresh"));
    panel.querySelector("header")?.append(offer);
  }
  offer.dataset.n = String(n);
  offer.textContent = `${n} new`;
}

document.addEventListener("htmx:sse:before:message", (event) => {
  const name = event.detail.message?.event;
  if (!name) return;
  if (name === "reset") document.querySelectorAll("[data-on]").forEach(fetchLater);
  for (const panel of document.querySelectorAll("[data-on]")) {
    if (panel.dataset.on.split(" ").includes(name)) fetchLater(panel);
  }
});

// What a hidden tab was told before its stream ended, it fetches when it is seen again.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) document.querySelectorAll("[data-on][data-missed]").forEach(fetchLater);
});

// Begun here and not by htmx, so that no message of it comes before somebody hears.
if (document.getElementById("live")) renew();

// The age of the data counts up by itself between messages.
setInterval(() => {
  for (const age of document.querySelectorAll("[data-stored-at]")) {
    const seconds = (Date.now() - Date.parse(age.dataset.storedAt)) / 1000;
    if (seconds >= 10 && !isPaused) age.textContent = seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
  }
  if (!isPaused) words("utc", clock());
}, 1000);
