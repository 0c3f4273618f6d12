// One pair, side by side: the page only paints. Which lines a rule covers, and the verdict, come from the server's comparer.
const TONES = { mismatch: "bad", error: "warn", missing: "warn", incomparable: "out", undecided: "out" };
let areMasksOn = true;
let asked = 0;

const number = (n) => n.toLocaleString("en-US");
const tell = (text) => {
  const place = document.getElementById("preview-words");
  if (place) place.textContent = text;
};

async function judgeAgain(form) {
  const mine = (asked += 1);
  const chosen = (kind) => [...form.querySelectorAll(`input[data-kind=${kind}]:checked`)].map((box) => box.value);
  const typed = form.querySelector("[name=try]").value.trim();
  const body = {
    request_id: form.dataset.request,
    shadow: form.dataset.shadow,
    masks: typed ? [...chosen("mask"), typed] : chosen("mask"),
    tolerate: chosen("tolerate"),
    elsewhere: true,
    from: form.dataset.start,
    to: form.dataset.end,
  };
  form.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.dataset.preview, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify(body),
    });
    const said = await answer.json();
    if (mine !== asked) return;
    if (answer.ok) paint(said, body.shadow);
    else tell(said.detail ?? said.title);
  } catch {
    if (mine === asked) tell("The server did not answer.");
  } finally {
    if (mine === asked) form.removeAttribute("aria-busy");
  }
}

const CLASSES = { masked: "hid", tolerated: "tol", counted: "x" };

function paint(said, shadow) {
  const states = new Map(said.differences.map((place) => [place.path, place.state]));
  const counts = { counted: 0, masked: 0, tolerated: 0 };
  for (const place of said.differences) counts[place.state] += 1;
  for (const row of document.querySelectorAll(".diff [data-path]")) {
    row.classList.remove("hid", "tol", "x");
    row.classList.add(CLASSES[states.get(row.dataset.path) ?? "counted"]);
  }
  const chip = document.getElementById("verdict");
  if (chip) {
    chip.textContent = said.outcome;
    chip.className = `chip ${TONES[said.outcome] ?? ""}`.trim();
  }
  const place = document.getElementById("counts");
  const also = ["masked", "tolerated"].filter((state) => counts[state]).map((state) => ` · ${number(counts[state])} ${state}`);
  if (place) place.textContent = `${number(counts.counted)} differ${also.join("")}`;
  tell(elsewhere(said, shadow));
}

// What rules that are only tried would do to the stored pairs of the range.
function elsewhere(said, shadow) {
  const tried = [...said.masks, ...said.tolerances].filter((rule) => rule.source === "request" && rule.is_on).map((rule) => rule.mask ?? rule.tolerance);
  if (!tried.length || !said.elsewhere) return "";
  const name = tried.join(" and ");
  const mine = said.elsewhere.shadows.find((one) => one.shadow_upstream === shadow);
  const others = said.elsewhere.shadows.filter((one) => one.shadow_upstream !== shadow && one.touched);
  const first = mine?.touched
    ? `${name}: of ${number(mine.pairs)} stored pairs of ${shadow} that differ, ${number(mine.cleared)} would differ no more, ${number(mine.touched - mine.cleared)} in part.`
    : `${name} touches no other stored pair of ${shadow}.`;
  return others.length ? `${first} At others: ${others.map((one) => `${number(one.cleared)} of ${one.shadow_upstream}`).join(", ")}.` : first;
}

document.addEventListener("change", (event) => {
  const form = event.target.closest("[data-preview]");
  if (form) judgeAgain(form);
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-preview]")) return;
  event.preventDefault();
  judgeAgain(event.target);
});
document.addEventListener("gnomon:masks", () => {
  const form = document.querySelector("[data-preview]");
  if (!form) return;
  areMasksOn = !areMasksOn;
  for (const box of form.querySelectorAll("input[data-kind=mask]")) {
    if (!areMasksOn) box.dataset.was = String(box.checked);
    box.checked = areMasksOn && box.dataset.was === "true";
  }
  judgeAgain(form);
});
