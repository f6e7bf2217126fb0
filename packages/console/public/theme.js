// Runs before the first picture is drawn: whoever chose a theme must not see the other one for a moment. src/state/settings.ts
// keeps the choice. The Content-Security-Policy allows no script in the page itself.
try {
  const theme = localStorage.getItem("idmint.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Whoever switched storages off has chosen nothing.
}
