// The judge's statistics for filtered data; seeded, so that the same selection shows the same numbers.
"use strict";
(function () {
  function generator(seed) {
    return function () {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }
  const known = (values) => values.filter((value) => typeof value === "number");
  const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);

  function percentile(ordered, share) {
    const place = share * (ordered.length - 1);
    const below = Math.floor(place);
    const above = Math.min(below + 1, ordered.length - 1);
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below);
  }

  function interval(values, resamples = 1000) {
    if (!values.length) return [null, null];
    const next = generator(values.length);
    const n = values.length;
    const means = new Float64Array(resamples);
    for (let r = 0; r < resamples; r++) {
      let sum = 0;
      for (let i = 0; i < n; i++) sum += values[Math.floor(next() * n)];
      means[r] = sum / n;
    }
    means.sort();
    return [percentile(means, 0.025), percentile(means, 0.975)];
  }

  // Two-sided p-value: the share of random sign assignments whose sum is at least as far from zero.
  function permutation(differences, rounds = 5000) {
    const moving = differences.filter((d) => d !== 0);
    if (!moving.length) return 1;
    const observed = Math.abs(moving.reduce((a, b) => a + b, 0)) - 1e-12;
    const exact = moving.length <= 12;
    const count = exact ? 1 << moving.length : rounds;
    const next = generator(moving.length);
    let hits = 0;
    for (let r = 0; r < count; r++) {
      let sum = 0;
      for (let i = 0; i < moving.length; i++) sum += (exact ? (r >> i) & 1 : next() < 0.5) ? moving[i] : -moving[i];
      if (Math.abs(sum) >= observed) hits++;
    }
    return exact ? hits / count : (hits + 1) / (count + 1);
  }

  // Two agents over the incidents that both have a value for.
  srearena.compared = function (matrix, places, a, b) {
    const shared = places.filter((i) => typeof matrix[a][i] === "number" && typeof matrix[b][i] === "number");
    const differences = shared.map((i) => matrix[a][i] - matrix[b][i]);
    return { shared, differences, difference: mean(differences), p: shared.length ? permutation(differences, 2000) : null };
  };

  // Holm's correction for several tests: p-values in the order given.
  function holm(values) {
    const order = values.map((p, i) => [p, i]).filter(([p]) => p !== null).sort((x, y) => x[0] - y[0]);
    const corrected = values.map(() => null);
    let most = 0;
    order.forEach(([p, i], n) => { most = Math.max(most, Math.min(1, p * (order.length - n))); corrected[i] = most; });
    return corrected;
  }

  srearena.statistics = { known, mean, interval, permutation, holm };
})();
