// Regions that open in place: the equal parts of a diff.
document.addEventListener("click", (event) => {
  const fold = event.target.closest(".fold");
  if (!fold) return;
  const body = document.getElementById(fold.getAttribute("aria-controls"));
  if (!body) return;
  body.hidden = !body.hidden;
  fold.setAttribute("aria-expanded", String(!body.hidden));
});
