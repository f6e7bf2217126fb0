// Builds the packages into packages/*/dist, and removes outputs whose source is gone.
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { TOPICS } from "../packages/cli/src/text/topics.ts";
import { buildProgram } from "./bundle.ts";
import { buildCommonJs } from "./cjs.ts";
import { publishedPackages, root, run } from "./lib.ts";

// Several checkers of one project each learn the same types, which two cores are slower at.
run(
  "tsc",
  "-b",
  "--checkers",
  "1",
  ...publishedPackages.map((name) => path.join("packages", name)),
);

for (const name of publishedPackages) {
  const dist = path.join(root, "packages", name, "dist");
  for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
    const output = /^(.+?)(?:\.js|\.js\.map|\.d\.ts)$/.exec(file);
    if (output === null) continue;
    const source = path.join(root, "packages", name, "src", `${output[1]}.ts`);
    if (!existsSync(source)) rmSync(path.join(dist, file));
  }
}

// The .proto files and where buf finds them, for other languages: laid out as in the repository.
const protoPackage = path.join(root, "packages", "proto");
rmSync(path.join(protoPackage, "proto"), { recursive: true, force: true });
for (const name of ["proto", "buf.yaml"]) {
  cpSync(path.join(root, name), path.join(protoPackage, name), { recursive: true });
}

// A server from sources serves it where it is built; the package of the program carries a copy.
run("node", "packages/console/build.ts");
const served = path.join(root, "packages/cli/console");
rmSync(served, { recursive: true, force: true });
cpSync(path.join(root, "packages/server/console"), served, { recursive: true });

// `idmint help TOPIC` prints pages of the docs, so the package carries them.
const pages = path.join(root, "packages/cli/docs");
rmSync(pages, { recursive: true, force: true });
mkdirSync(pages);
const carried = new Set(Object.values(TOPICS).map(({ page }) => page));
for (const page of carried) {
  const text = readFileSync(path.join(root, "docs", page), "utf8");
  // A link to what the package does not carry would lead nowhere.
  const linked = text.replaceAll(
    /\[([^\]]+)\]\((?!https?:)([^)#]+)[^)]*\)/g,
    (link, title: string, target: string) => (carried.has(target) ? link : title),
  );
  writeFileSync(path.join(pages, page), linked);
}

await buildProgram();

const adapters = ["drizzle", "fastify", "nestjs", "prisma", "typeorm"];
await buildCommonJs("client", [
  "index",
  "otel",
  "testing",
  "unguessable",
  "uuid",
  ...adapters.map((name) => `adapters/${name}`),
]);
run("node", "scripts/sbom.ts");
