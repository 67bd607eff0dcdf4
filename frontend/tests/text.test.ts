import assert from "node:assert/strict";
import { test } from "node:test";
import { clean, excerpt, matches } from "../src/text";

test("control characters and bidirectional marks become symbols, terminal colours vanish", () => {
  assert.equal(clean("\u001b[31mred\u001b[0m \u0007 \u202eevil"), "red \u2407 \ufffdevil");
  assert.equal(clean({ a: 1 }), '{"a":1}');
  assert.equal(clean(null), "");
});

test("a long text is cut at a line, and a long line at a length", () => {
  const text = Array.from({ length: 100 }, (_, n) => `line ${n}`).join("\n");
  assert.equal(excerpt(text, 2).text, "line 0\nline 1\n");
  assert.equal(excerpt("x".repeat(50), 5, 20).hidden, 30);
  assert.equal(excerpt("short").hidden, 0);
});

test("every occurrence of a query is marked, and the parts make up the text", () => {
  const parts = matches("Pod pod POD", "pod");
  assert.deepEqual(parts.filter((part) => part.match).map((part) => part.text), ["Pod", "pod", "POD"]);
  assert.equal(parts.map((part) => part.text).join(""), "Pod pod POD");
  assert.equal(matches("İpod", "pod").map((part) => part.text).join(""), "İpod");
});
