import assert from "node:assert/strict";
import { test } from "node:test";
import { fenced, inline, stepMarkdown } from "../src/markdown";

test("text cannot end the block that it is in", () => {
  const block = fenced("a\n````\n# heading\n````");
  assert.ok(block.startsWith("`````text\n"));
  assert.ok(block.endsWith("\n`````"));
});

test("text in a line or a table is no markup", () => {
  assert.equal(inline("a | <b>\n[x](y)"), "a \\| \\<b\\> \\[x\\]\\(y\\)");
});

test("a step has its facts, thought, command and answer", () => {
  const text = stepMarkdown({ kind: "action", title: "get pods", stage: "", command: "get pods", answer: "none", thought: "why", seconds: 2 }, 3);
  assert.ok(text.startsWith("### 3. get pods\n\n2.0 s\n\n> why\n\n```text\nget pods\n```"));
});
