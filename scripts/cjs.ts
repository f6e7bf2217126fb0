// Builds the CommonJS face of a package whose implementation is ES modules: for each entry a .cjs file with its types, and
// one bundle for loaders that cannot require() an ES module.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { parseSync } from "oxc-parser";
import { root } from "./lib.ts";

const BUNDLE = "bundle.cjs";

/** `entries`: names of the files in dist/ that package.json exports, with their folder if they are in one. */
export async function buildCommonJs(name: string, entries: readonly string[]): Promise<void> {
  const dist = path.join(root, "packages", name, "dist");
  await buildBundle(dist, entries);
  for (const entry of entries) {
    writeFileSync(path.join(dist, `${entry}.cjs`), faceOf(entry));
    writeFileSync(path.join(dist, `${entry}.d.cts`), await typesOf(dist, entry));
  }
}

/**
 * Node.js loads the ES module also for require(), so import and require() share one copy of everything. Only a loader
 * that cannot do so gets the bundle, and then nobody has the ES module beside it.
 */
function faceOf(entry: string): string {
  return `"use strict";
try {
  module.exports = require("./${path.basename(entry)}.js");
} catch {
  // A loader that knows no ES modules, such as jest's. What else went wrong is thrown again here.
  module.exports = require("./${path.relative(path.dirname(entry), BUNDLE)}").${path.basename(entry)};
}
`;
}

/** Everything in one file, so that all entries share one copy here as well; each is run when it is first asked for. */
async function buildBundle(dist: string, entries: readonly string[]): Promise<void> {
  const getters = entries.map(
    (entry) => `get ${path.basename(entry)}() { return require("./${entry}.js"); },`,
  );
  await build({
    stdin: { contents: `module.exports = { ${getters.join(" ")} };`, resolveDir: dist },
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node22",
    external: ["@grpc/grpc-js", "@nestjs/common", "@opentelemetry/api"],
    outfile: path.join(dist, BUNDLE),
    legalComments: "inline",
    logLevel: "warning",
  });
}

/** Types for CommonJS: they name those of the ES module, since a copy would be other types. */
async function typesOf(dist: string, entry: string): Promise<string> {
  const file = path.join(dist, `${entry}.d.ts`);
  const { module, errors } = parseSync(file, readFileSync(file, "utf8"));
  if (errors.length > 0) throw new Error(`${file} does not parse`);
  const values = (await import(pathToFileURL(path.join(dist, `${entry}.js`)).href)) as object;
  const from = `import("./${path.basename(entry)}.js", { with: { "resolution-mode": "import" } })`;
  const names = module.staticExports.flatMap(({ entries: exported }) =>
    exported.flatMap(({ exportName }) => exportName.name ?? []),
  );
  const lines = [...new Set(names)].toSorted().flatMap((name) => {
    const value: unknown = Reflect.get(values, name);
    const type = `export type ${name} = ${from}.${name};`;
    if (value === undefined) return [type];
    const declared = `export declare const ${name}: typeof ${from}.${name};`;
    return isClass(value) ? [declared, type] : [declared];
  });
  return `${lines.join("\n")}\n`;
}

function isClass(value: unknown): boolean {
  return typeof value === "function" && Function.prototype.toString.call(value).startsWith("class");
}
