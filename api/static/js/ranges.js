// Backspace takes back a change of the range: of this page, in this tab, one after the other. The tab keeps where it was.
const KEPT = "gnomon.ranges";
const rangeOf = (address) => ["from", "to"].map((name) => address.searchParams.get(name)).join();

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? { here: "", past: [] };
  } catch {
    return { here: "", past: [] };
  }
}

function keep(state) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(state));
  } catch {
    // A tab that may keep nothing has nothing to take back.
  }
}

const MOST = 20;
function arrive() {
  const { here, past } = kept();
  const now = new URL(location.href);
  const before = here ? new URL(here, location.href) : null;
  if (!before || before.pathname !== now.pathname) past.length = 0;
  else if (past.at(-1) === now.href) past.pop();
  else if (rangeOf(before) !== rangeOf(now)) past.push(before.href);
  keep({ here: now.href, past: past.slice(-MOST) });
}

export function undoRange() {
  const last = kept().past.at(-1);
  if (last) location.assign(last);
}

// Times are shown in UTC, or in the zone of whoever reads: the address says which.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const link = document.querySelector("[data-zone-link]");
if (link && zone && ![document.body.dataset.zone, "UTC", "Etc/UTC"].includes(zone)) {
  const address = new URL(location.href);
  address.searchParams.set("tz", zone);
  link.href = address.href;
  link.hidden = false;
  link.textContent = `local, ${zone}`;
}

arrive();
addEventListener("pageshow", (event) => {
  if (event.persisted) arrive();
});
