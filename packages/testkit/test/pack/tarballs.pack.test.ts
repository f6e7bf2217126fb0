import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, inject, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../../../..");
const bin = path.join(root, "node_modules", ".bin");

// Tracked and new files, without what .gitignore names.
const listSources = ["ls-files", "--cached", "--others", "--exclude-standard", "--", "src"];

function outcome(command: string, ...args: readonly string[]): { status: number; text: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
  if (error !== undefined) throw error;
  return { status: status ?? -1, text: status === 0 ? stdout : stdout + stderr };
}

function output(command: string, ...args: readonly string[]): string {
  const { status, text } = outcome(command, ...args);
  if (status !== 0)
    throw new Error(`${command} ${args.join(" ")} failed
${text}`);
  return text;
}

/** Names that a package.json's exports or bin point at. */
function targets(node: unknown): string[] {
  if (typeof node === "string") return [node.replace(/^\.\//, "")];
  if (typeof node !== "object" || node === null) return [];
  return Object.values(node).flatMap(targets);
}

const CONSOLE =
  /^console\/(?:assets\/[\w-]+\.(?:js|css)|index\.html|icon\.svg|theme\.js|third-party\.md)(?:\.br|\.gz)?$/;

function namesIn(file: string): readonly string[] {
  return output("tar", "-tzf", file)
    .trim()
    .split("\n")
    .map((name) => name.replace(/^package\//, ""))
    .toSorted();
}

// That of the command has a bundle instead: program.pack.test.ts.
const libraries = inject("tarballs").filter(({ folder }) => folder !== "cli");

test.each(libraries)(
  "the tarball of packages/$folder holds exactly one output for each source file",
  ({ folder, file }) => {
    const outputs = namesIn(file).filter((name) => /^dist\/.*\.js$/.test(name));
    const sources = output("git", "-C", path.join(root, "packages", folder), ...listSources)
      .trim()
      .split("\n")
      .filter((name) => name.endsWith(".ts"))
      .map((name) => name.replace(/^src\//, "dist/").replace(/\.ts$/, ".js"));
    expect(outputs).toEqual([...new Set(sources)].toSorted());
  },
);

// `changeset version` refuses a change that names a private package too.
test("what waits for a release names only packages that are published", () => {
  const published = inject("tarballs").map(
    ({ folder }) =>
      (
        JSON.parse(readFileSync(path.join(root, "packages", folder, "package.json"), "utf8")) as {
          name: string;
        }
      ).name,
  );
  const changes = path.join(root, ".changeset");
  const named = readdirSync(changes)
    .filter((file) => file.endsWith(".md"))
    .flatMap((file) => {
      const [, head = ""] = readFileSync(path.join(changes, file), "utf8").split("---\n");
      return [...head.matchAll(/^"(.+)": /gm)].map(([, name]) => ({ file, name }));
    });
  expect(named.filter(({ name }) => !published.includes(name ?? ""))).toEqual([]);
});

describe.each(inject("tarballs"))("the tarball of packages/$folder", ({ folder, file }) => {
  const names = namesIn(file);
  const manifestText = output("tar", "-xzOf", file, "package/package.json");
  const manifest = JSON.parse(manifestText) as Record<string, unknown>;

  test("holds JavaScript with its maps, types, README, LICENSE and package.json, and nothing else", () => {
    const isOutput = /^dist\/[\w./-]+\.(?:js|js\.map|d\.ts)$/;
    const more: Record<string, RegExp> = {
      client: /^dist\/(?:adapters\/)?\w+\.(?:cjs|d\.cts)$/,
      // What `idmint help TOPIC` prints, and what the server in it shows.
      cli: new RegExp(`^docs/[a-z-]+\\.md$|${CONSOLE.source}`),
      proto: /^buf\.yaml$|^proto\/[\w./-]+\.proto$/,
    };
    const isMore = more[folder] ?? /^$/;
    const rest = names.filter((name) => !isOutput.test(name) && !isMore.test(name));
    expect(rest).toEqual(["LICENSE", "README.md", "package.json"]);
  });

  test("carries the licence of the repository", () => {
    const licence = readFileSync(path.join(root, "LICENSE"), "utf8");
    expect(output("tar", "-xzOf", file, "package/LICENSE")).toBe(licence);
  });

  test("names versions, and neither the workspace nor the sources", () => {
    expect(manifestText).not.toContain("workspace:");
    expect(manifestText).not.toContain("idmint-source");
    expect(manifestText).not.toContain("src/");
    for (const range of Object.values(manifest["dependencies"] ?? {})) {
      expect(range).toMatch(/^\d+\.\d+\.\d+$/);
    }
    expect(manifest).toMatchObject({
      license: "Apache-2.0",
      type: "module",
      engines: { node: ">=22.13" },
    });
  });

  test("holds every file that package.json points at", () => {
    const wanted = targets([manifest["exports"], manifest["bin"]]);
    expect(names).toEqual(expect.arrayContaining(wanted));
  });

  test("has no complaint from publint", () => {
    const { status, text } = outcome(path.join(bin, "publint"), "run", file, "--strict");
    expect(status, text).toBe(0);
  });

  // The SDK is for CommonJS and older resolvers too.
  const profile = folder === "client" ? "strict" : "esm-only";
  test(`has types that resolve for every kind of consumer (${profile})`, () => {
    const { status, text } = outcome(path.join(bin, "attw"), "--profile", profile, file);
    expect(status, text).toBe(0);
  });
});
