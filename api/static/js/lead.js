// A late panel may complete the first sentence of its page: it brings it whole.
document.addEventListener("htmx:after:swap", () => {
  const lead = document.querySelector(".statement .lead");
  const whole = document.querySelector("[data-lead]");
  if (lead && whole && whole.textContent && lead.textContent !== whole.textContent) lead.textContent = whole.textContent;
});
