// Light or dark: kept in a cookie that the server writes into <html data-theme>, so that no page flashes.
const root = document.documentElement;

function isDark() {
  const named = root.dataset.theme;
  return named ? named === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function toggleTheme() {
  const name = isDark() ? "light" : "dark";
  root.dataset.theme = name;
  document.cookie = `gnomon_theme=${name}; Path=/; Max-Age=31536000; SameSite=Lax`;
  document.dispatchEvent(new CustomEvent("gnomon:theme"));
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-act=theme]")) toggleTheme();
});
