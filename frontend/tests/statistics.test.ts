import assert from "node:assert/strict";
import test from "node:test";
import { compared, normal, permutation } from "../src/site/statistics";

test("the normal distribution says what all sign assignments say", () => {
  const differences = [0.3, -0.1, 0.2, 0.4, 0.1, -0.2, 0.5, 0.3, 0.2, 0.1, 0.05];
  assert.ok(Math.abs(permutation(differences) - normal(differences)) < 0.01);
  assert.equal(normal([0, 0]), 1);
  assert.ok(Math.abs(normal([1.959964]) - 0.3173105) < 1e-6, "one difference has one standard deviation");
});

test("hundreds of tests can tell from noise what differs everywhere", () => {
  const matrix = [Array<number>(40).fill(1), Array<number>(40).fill(0)];
  const places = matrix[0]?.map((_, place) => place) ?? [];
  assert.ok((compared(matrix, places, 0, 1).p ?? 1) * 999 > 0.05);
  assert.ok((compared(matrix, places, 0, 1, 999).p ?? 1) * 999 < 0.05);
});
