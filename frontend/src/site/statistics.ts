// The judge's statistics for filtered data; seeded, so that the same selection shows the same numbers.
import type { Matrix } from "./data";

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export const known = (values: readonly (number | null | undefined)[]): number[] => values.filter((value): value is number => typeof value === "number");
export const mean = (values: readonly number[]): number | null => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);

function percentile(ordered: Float64Array, share: number): number {
  const place = share * (ordered.length - 1);
  const below = Math.floor(place);
  const low = ordered[below] ?? 0;
  const high = ordered[Math.min(below + 1, ordered.length - 1)] ?? low;
  return low + (high - low) * (place - below);
}

export function interval(values: readonly number[], resamples = 1000): [number | null, number | null] {
  const n = values.length;
  if (!n) return [null, null];
  const next = generator(n);
  const means = new Float64Array(resamples);
  for (let r = 0; r < resamples; r++) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += values[Math.floor(next() * n)] ?? 0;
    means[r] = sum / n;
  }
  means.sort();
  return [percentile(means, 0.025), percentile(means, 0.975)];
}

// Up to so many differences all sign assignments are tried.
const EXACT = 12;

// Two-sided p-value: the share of random sign assignments whose sum is at least as far from zero.
export function permutation(differences: readonly number[], rounds = 5000): number {
  const moving = differences.filter((difference) => difference !== 0);
  if (!moving.length) return 1;
  const observed = Math.abs(moving.reduce((a, b) => a + b, 0)) - 1e-12;
  const exact = moving.length <= EXACT;
  const count = exact ? 1 << moving.length : rounds;
  const next = generator(moving.length);
  let hits = 0;
  for (let r = 0; r < count; r++) {
    let sum = 0;
    moving.forEach((value, i) => {
      sum += (exact ? (r >> i) & 1 : next() < 0.5) ? value : -value;
    });
    if (Math.abs(sum) >= observed) hits++;
  }
  return exact ? hits / count : (hits + 1) / (count + 1);
}

// The same share by the normal distribution: random signs have a sum of variance Σd².
export function normal(differences: readonly number[]): number {
  const squares = differences.reduce((sum, value) => sum + value * value, 0);
  return squares ? complementaryError(Math.abs(differences.reduce((a, b) => a + b, 0)) / Math.sqrt(2 * squares)) : 1;
}

// erfc for x >= 0, to 1.5e-7 (Abramowitz and Stegun 7.1.26).
function complementaryError(x: number): number {
  const t = 1 / (1 + 0.3275911 * x);
  const polynomial = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592].reduce((sum, each) => sum * t + each, 0);
  return polynomial * t * Math.exp(-x * x);
}

const ROUNDS = 2000;
// A random sample has no p-value below one in its rounds, so of more tests than this none could be told from noise.
const SAMPLED_TESTS = 50;

export interface Compared {
  shared: number[];
  differences: number[];
  difference: number | null;
  p: number | null;
}

// Two agents over the incidents that both have a value for, as one of several tests.
export function compared(matrix: Matrix, places: readonly number[], a: number, b: number, tests = 1): Compared {
  const shared: number[] = [];
  const differences: number[] = [];
  for (const place of places) {
    const x = matrix[a]?.[place];
    const y = matrix[b]?.[place];
    if (typeof x !== "number" || typeof y !== "number") continue;
    shared.push(place);
    differences.push(x - y);
  }
  const few = tests <= SAMPLED_TESTS || shared.length <= EXACT;
  const p = few ? permutation(differences, ROUNDS) : normal(differences);
  return { shared, differences, difference: mean(differences), p: shared.length ? p : null };
}

// Holm's correction for several tests: p-values in the order given.
export function holm(values: readonly (number | null)[]): (number | null)[] {
  const order = values.flatMap((p, i) => (p === null ? [] : [[p, i] as const])).sort((x, y) => x[0] - y[0]);
  const corrected: (number | null)[] = values.map(() => null);
  let most = 0;
  order.forEach(([p, i], n) => {
    most = Math.max(most, Math.min(1, p * (order.length - n)));
    corrected[i] = most;
  });
  return corrected;
}
