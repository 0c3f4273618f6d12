// Find a page, an upstream, a finding or a request: a dialog whose matches come from the server.
export function openFind() {
  const dialog = document.getElementById("find");
  if (!dialog || dialog.open) return;
  dialog.showModal();
  const field = dialog.querySelector("input");
  field.value = "";
  field.focus();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-act=find]")) openFind();
});

addEventListener("keydown", (event) => {
  const dialog = document.getElementById("find");
  if (!dialog?.open) return;
  const links = [...dialog.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown") links[at + 1]?.focus();
  else if (event.key === "ArrowUp") (links[at - 1] ?? dialog.querySelector("input")).focus();
  else if (event.key === "Enter" && at < 0 && links.length) links[0].click();
  else return;
  event.preventDefault();
});
