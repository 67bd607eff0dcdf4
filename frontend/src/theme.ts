// Light and dark: the system's choice, until the reader makes another one.
const KEY = "srearena-theme";

export function restoreTheme(): void {
  try {
    const theme = localStorage.getItem(KEY);
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  } catch {
    // No storage, as for some files: the system's theme.
  }
}

export function toggleTheme(): void {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem(KEY, root.dataset.theme);
  } catch {
    // Storage may be disabled: the theme lasts as long as the page.
  }
}
