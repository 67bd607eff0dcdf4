import assert from "node:assert/strict";
import { test } from "node:test";
import { names } from "../src/components/Verdicts";
import { type Filter, filtered, grouped } from "../src/grouping";
import { link, parse } from "../src/router";
import type { Row } from "../src/types";

const NONE: Filter = { q: "", agent: "", model: "", family: "", outcome: "" };

function row(change: Partial<Row>): Row {
  return {
    id: "x", source: "run", run: "r", problem: "p", agent: "a", outcome: "pass", trial: 0, model: "", family: "network", application: "",
    reason: "", stages: [], score: null, steps: 1, tokens: 0, cost: 0, seconds: 1, at: "", session: "", ...change,
  };
}

test("every word of the search must occur, and every filter must fit", () => {
  const rows = [row({ problem: "wrong_port" }), row({ problem: "wrong_dns", agent: "b" }), row({ outcome: "fail" })];
  assert.equal(filtered(rows, { ...NONE, q: "wrong dns" }).length, 1);
  assert.equal(filtered(rows, { ...NONE, agent: "b" })[0]?.problem, "wrong_dns");
  assert.equal(filtered(rows, { ...NONE, outcome: "fail" }).length, 1);
});

test("running trials and errors of the environment are not graded", () => {
  const [group] = grouped([row({}), row({ outcome: "running" }), row({ outcome: "fail" })], "agent");
  assert.deepEqual([group?.name, group?.passed, group?.graded, group?.rows.length], ["a", 1, 2, 3]);
});

test("an address can hold any text and is read back", () => {
  const route = parse(link(["trial", "0/a b/ü?#&/1"], { step: 3, q: "a=b&c" }));
  assert.deepEqual(route, { parts: ["trial", "0/a b/ü?#&/1"], query: { step: "3", q: "a=b&c" } });
  assert.deepEqual(parse("#/%E0%A4%A").parts, ["%E0%A4%A"]);
});

test("an answer names the origin with or without namespace and kind", () => {
  const truth = { roots: ["shop/Service/cart"], aliases: [["shop/Service/cart", "shop/Deployment/cart"]] };
  for (const answer of ["cart", "Service/cart", "shop/cart", "shop/deployment/cart"]) assert.ok(names(answer, truth), answer);
  for (const answer of ["", "checkout", "art"]) assert.ok(!names(answer, truth), answer);
});
