// Numbers and times as people read them.

const NONE = "–";

export function seconds(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 100) return `${value.toFixed(1)} s`;
  return `${(value / 60).toFixed(1)} min`;
}

export function money(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value) || value === 0) return NONE;
  return `$${value.toFixed(value < 1 ? 4 : 2)}`;
}

export function count(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  return value.toLocaleString("en-US");
}

export function share(value: number | null | undefined): string {
  return typeof value === "number" && Number.isFinite(value) ? value.toFixed(2) : NONE;
}

export function when(value: string): string {
  return value ? value.replace("T", " ").slice(0, 16) : NONE;
}

export function clock(value: string | undefined): string {
  return value ? value.slice(11, 19) : "";
}
