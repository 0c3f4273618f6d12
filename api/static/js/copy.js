// Copying: buttons copy an element's text; a selection within one shortened value gives the whole value.
export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  if (!button) return;
  const before = button.dataset.words ?? button.textContent;
  button.dataset.words = before;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1500);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy], [data-copy-link]");
  if (!button) return;
  if (button.dataset.copyLink !== undefined) copyText(new URL(button.dataset.copyLink, location.href).href, button);
  else copyText(document.getElementById(button.dataset.copy).textContent, button);
});

document.addEventListener("copy", (event) => {
  const selection = getSelection();
  if (!selection.rangeCount || event.target.closest?.("textarea, input")) return;
  const common = selection.getRangeAt(0).commonAncestorContainer;
  const holder = (common.nodeType === Node.TEXT_NODE ? common.parentElement : common).closest?.("[data-whole]");
  if (!holder) return;
  event.clipboardData.setData("text/plain", holder.dataset.whole);
  event.preventDefault();
});
