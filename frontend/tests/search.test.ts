import assert from "node:assert/strict";
import { test } from "node:test";
import { divergence, found, nextIndex } from "../src/search";
import type { Step } from "../src/types";

const act = (command: string): Step => ({ kind: "action", title: command, stage: "detection", command });

test("a query is found in title, thought, command and answer", () => {
  const steps = [act("get pods"), { ...act("get svc"), answer: "PODS here" }, { ...act("x"), thought: "the pods?" }, act("y")];
  assert.deepEqual(found(steps, "pods"), [0, 1, 2]);
  assert.deepEqual(found(steps, "  "), []);
});

test("the next match wraps around in both directions", () => {
  assert.equal(nextIndex([2, 5], 2), 5);
  assert.equal(nextIndex([2, 5], 5), 2);
  assert.equal(nextIndex([2, 5], 2, true), 5);
  assert.equal(nextIndex([], 0), undefined);
});

test("two transcripts diverge at the first act that differs", () => {
  const stage: Step = { kind: "stage", title: "Stage", stage: "detection" };
  assert.equal(divergence([act("a"), act("b")], [stage, act("a"), act("c")]), 1);
  assert.equal(divergence([act("a")], [act("a"), act("b")]), undefined);
});
