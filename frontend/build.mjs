// Build the application: `npm run build`, or `node build.mjs DIRECTORY` to build elsewhere.
// The output is one script and one style sheet, because an exported trial holds both in one file.
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2] ?? join(here, "..", "srearena", "view", "assets");
const packages = ["preact", "uplot", "@dagrejs/dagre", "@dagrejs/graphlib"];

await mkdir(output, { recursive: true });
await build({
  entryPoints: [join(here, "src", "main.tsx")],
  outfile: join(output, "view.js"),
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  absWorkingDir: here,
});
await copyFile(join(here, "public", "index.html"), join(output, "index.html"));

const licences = [];
for (const name of packages) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const text = await readFile(join(folder, "LICENSE"), "utf8");
  licences.push(`${name} ${version} (${license})\n\n${text.trim()}\n`);
}
await writeFile(join(output, "licences.txt"), `view.js contains these packages.\n\n${licences.join("\n\n")}`);
