// Run the unit tests: TypeScript is bundled, then given to the test runner of Node.
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const output = await mkdtemp(join(tmpdir(), "srearena-view-"));
try {
  const files = (await readdir(join(here, "tests"))).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: files.map((name) => join(here, "tests", name)),
    outdir: output,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  const built = files.map((name) => join(output, name.replace(/\.ts$/, ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--test", ...built], { stdio: "inherit" }).status ?? 1;
} finally {
  await rm(output, { recursive: true });
}
