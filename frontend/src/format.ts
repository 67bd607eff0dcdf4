// Numbers and times as people read them.

const NONE = "–";

export function seconds(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 100) return `${value.toFixed(1)} s`;
  return `${(value / 60).toFixed(1)} min`;
}

export function money(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  return value === 0 ? "$0" : `$${value.toFixed(value < 1 ? 4 : 2)}`;
}

export function fixed(value: number | null | undefined, digits = 3): string {
  return typeof value === "number" && Number.isFinite(value) ? value.toFixed(digits) : NONE;
}

export function count(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  return value.toLocaleString("en-US");
}

export function share(value: number | null | undefined): string {
  return fixed(value, 2);
}

// A moment with its date, in UTC as all moments here.
export function moment(value: string): string {
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(value);
  return found ? `${found[1]} ${found[2]}` : value;
}

export function when(value: string): string {
  return value ? value.replace("T", " ").slice(0, 16) : NONE;
}

export function clock(value: string | undefined): string {
  return value ? value.slice(11, 19) : "";
}

const PREFIXES: [number, string][] = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];

// A number with three significant digits: 1.9, 96.6, 1.24k.
export function short(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  for (const [size, prefix] of PREFIXES) {
    if (Math.abs(value) >= size) return `${significant(value / size)}${prefix}`;
  }
  return significant(value);
}

function significant(value: number): string {
  if (value === 0) return "0";
  return String(Number.parseFloat(value.toPrecision(Math.abs(value) < 0.1 ? 1 : 3)));
}

export function rate(value: number | null | undefined): string {
  return typeof value === "number" ? `${short(value)}/s` : NONE;
}

export function percent(value: number | null | undefined): string {
  return typeof value === "number" ? `${short(value * 100)} %` : NONE;
}

export function milliseconds(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  return value >= 1000 ? `${short(value / 1000)} s` : `${short(value)} ms`;
}

const BYTES: [number, string][] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];

export function bytes(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  for (const [size, unit] of BYTES) if (value >= size) return `${significant(value / size)} ${unit}`;
  return `${significant(value)} B`;
}

export function time(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(11, 19);
}
