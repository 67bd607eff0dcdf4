// Build the view and the site: `npm run build`, or `node build.mjs DIRECTORY` to build elsewhere.
// Each is one script and one style sheet, because an exported trial holds both in one file.
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
// A directory to build in gets `view` and `site`; without one, the files go where the packages have them.
const elsewhere = process.argv[2];
const view = elsewhere ? join(elsewhere, "view") : join(here, "..", "srearena", "view", "assets");
const site = elsewhere ? join(elsewhere, "site") : join(here, "..", "website");
const packages = ["preact", "uplot", "@dagrejs/dagre", "@dagrejs/graphlib"];

function bundle(source, target) {
  return build({
    entryPoints: [join(here, "src", source)],
    outfile: target,
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
}

await mkdir(view, { recursive: true });
await mkdir(join(site, "assets"), { recursive: true });
await bundle("main.tsx", join(view, "view.js"));
await bundle(join("site", "main.ts"), join(site, "assets", "site.js"));
await copyFile(join(here, "public", "index.html"), join(view, "index.html"));
await copyFile(join(here, "public", "site.html"), join(site, "index.html"));

const licences = [];
for (const name of packages) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const text = await readFile(join(folder, "LICENSE"), "utf8");
  licences.push(`${name} ${version} (${license})\n\n${text.trim()}\n`);
}
for (const [folder, script] of [[view, "view.js"], [join(site, "assets"), "site.js"]]) {
  await writeFile(join(folder, "licences.txt"), `${script} contains these packages.\n\n${licences.join("\n\n")}`);
}
