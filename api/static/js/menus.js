// Menus are <details>: a click outside or Escape closes them, and only one is open.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
    event.preventDefault();
  }
}, true);

// The switch of the range before leads on at once; a range that was typed beside it is sent along.
document.addEventListener("change", (event) => {
  const box = event.target.closest("[data-compare]");
  if (!box) return;
  const isTyped = [...box.form.querySelectorAll("input:not([type=hidden], [type=checkbox])")].some((field) => field.value !== field.defaultValue);
  if (isTyped) box.form.requestSubmit();
  else location.assign(box.dataset.compare);
});

// Forms whose choice is the address send only what was filled in.
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-address]")) return;
  for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true;
});
