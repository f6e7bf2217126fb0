// Holds the code to its map: who may import whom, as imports.yaml says, no circles of imports, those of
// types included, and the limits of files and folders. Generated code and migrations are left out, and so are tests, but for
// how many files a folder has.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { parseSync } from "oxc-parser";
import { parse } from "yaml";
import { kindFaults } from "./kind-rule.ts";
import { productPackages, root } from "./lib.ts";

const MAX_LINES = 400;
const MAX_FILES = 20;

/** What reaches the world outside a process, or another thread. A row of the map names those that it may import. */
const DRIVERS: ReadonlySet<string> = new Set([
  "@grpc/grpc-js",
  "@idmint/proto/grpc-js", // loads it
  "ioredis",
  "node:child_process",
  "node:http",
  "node:http2",
  "node:net",
  "node:sqlite",
  "node:worker_threads",
  "pg",
]);

interface Import {
  /** A file or folder of the repository, or the name of a driver or package. */
  readonly to: string;
  readonly isOfTypes: boolean;
}

/** A row of the map: what imports, and what it may import. */
interface MapRow {
  readonly from: string;
  readonly may: readonly Import[];
}

const entries = entryFiles();
const files = [...productPackages, "console"]
  .flatMap((name) => filesBelow(`packages/${name}/src`))
  .filter((file) => !/\/(?:gen|migrations)\//.test(file) && file !== "packages/proto/src/index.ts");
/** The testkit stands at the edge: it may import all, and keeps the limits. */
const limited = [
  ...files,
  ...filesBelow("packages/testkit/src"),
  ...filesBelow("packages/testkit/crash"),
  ...filesBelow("packages/testkit/sim"),
  ...filesBelow("packages/testkit/nemesis"),
  ...filesBelow("packages/testkit/fuzz"),
];
const tests = [...productPackages, "console", "testkit"].flatMap((name) =>
  filesBelow(`packages/${name}/test`),
);
const imports = new Map(limited.map((file) => [file, importsOf(file)]));
const faults = [...mapFaults(), ...circleFaults(), ...limitFaults(), ...kindFaults(files)];
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;

function filesBelow(folder: string): readonly string[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => path.posix.join(folder, name));
}

/** The file behind each name by which our packages are imported, such as `@idmint/core/kinds`. */
function entryFiles(): ReadonlyMap<string, string> {
  return new Map(
    productPackages.flatMap((folder) => {
      const place = path.posix.join("packages", folder);
      const { name, exports } = JSON.parse(
        readFileSync(path.join(root, place, "package.json"), "utf8"),
      ) as { name: string; exports?: Record<string, { "idmint-source"?: string }> };
      return Object.entries(exports ?? {}).flatMap(([entry, { "idmint-source": source }]) =>
        source === undefined
          ? []
          : [[path.posix.join(name, entry), path.posix.join(place, source)] as const],
      );
    }),
  );
}

function importsOf(file: string): readonly Import[] {
  const text = readFileSync(path.join(root, file), "utf8");
  const { staticImports, staticExports, dynamicImports } = parseSync(file, text).module;
  const found = [
    ...staticImports.map(({ moduleRequest, entries }) => ({
      name: moduleRequest.value,
      isOfTypes: entries.length > 0 && entries.every(({ isType }) => isType),
    })),
    ...staticExports.flatMap(({ entries }) =>
      entries.map(({ moduleRequest, isType }) => ({
        name: moduleRequest?.value,
        isOfTypes: isType,
      })),
    ),
    ...dynamicImports.map(({ moduleRequest: { start, end } }) => ({
      name: text.slice(start + 1, end - 1),
      isOfTypes: false,
    })),
  ];
  return found.flatMap(({ name, isOfTypes }) => {
    const to = name === undefined ? undefined : targetOf(file, name);
    return to === undefined ? [] : [{ to, isOfTypes }];
  });
}

/** What a name means in a file; undefined for packages that anybody may import. */
function targetOf(file: string, name: string): string | undefined {
  if (name.startsWith(".")) return path.posix.join(path.posix.dirname(file), name);
  if (DRIVERS.has(name)) return name;
  return name.startsWith("@idmint/") || name === "idmint" ? (entries.get(name) ?? name) : undefined;
}

/** The rows of imports.yaml, by the folder that their places are relative to. */
function rowsOfMap(): readonly MapRow[] {
  const map = parse(readFileSync(path.join(root, "imports.yaml"), "utf8")) as Readonly<
    Record<string, Readonly<Record<string, { holds: string; may: string }>>>
  >;
  return Object.entries(map).flatMap(([folder, rows]) =>
    Object.entries(rows).flatMap(([places, { may }]) => {
      const its = namesIn(may).map((name) => allowed(folder, name));
      return namesIn(places).map((name) => ({ from: placeOf(folder, name), may: its }));
    }),
  );
}

function namesIn(list: string): readonly string[] {
  return list.split(",").map((name) => name.trim());
}

function allowed(folder: string, name: string): Import {
  const [, bare = name] = /^(.*) \(types\)$/.exec(name) ?? [];
  return { to: placeOf(folder, bare), isOfTypes: bare !== name };
}

/** All of that folder, a file or folder below it, a package or one entry of it by its name, or a driver. */
function placeOf(folder: string, name: string): string {
  if (name === "all") return folder;
  if (name === "nothing" || DRIVERS.has(name)) return name;
  const entry = entries.get(name);
  if (entry !== undefined) return entry;
  if ((productPackages as readonly string[]).includes(name)) return `packages/${name}/src/`;
  return path.posix.join(folder, name);
}

function mapFaults(): readonly string[] {
  const rows = rowsOfMap().toSorted((a, b) => b.from.length - a.from.length);
  const rowOf = (name: string): MapRow | undefined => rows.find(({ from }) => isIn(name, from));
  const empty = rows.filter(({ from }) => !files.some((file) => isIn(file, from)));
  const broken = files.flatMap((file) => {
    const row = rowOf(file);
    if (row === undefined) return [`${file}: no row of imports.yaml has it`];
    return (imports.get(file) ?? [])
      .filter(
        ({ to, isOfTypes }) =>
          rowOf(to) !== row &&
          row.may.every((one) => !isIn(to, one.to) || (one.isOfTypes && !isOfTypes)),
      )
      .map(({ to }) => `${file}: may not import ${to}, says the row of ${row.from}`);
  });
  const gone = rows.flatMap(({ may }) => may).filter(({ to }) => !isThere(to));
  return [
    ...empty.map(({ from }) => `${from}: is a row of imports.yaml, and is not there`),
    ...gone.map(({ to }) => `${to}: is allowed by imports.yaml, and is not there`),
    ...broken,
  ];
}

function isThere(place: string): boolean {
  const isPlace = place.startsWith("packages/") && !place.endsWith("/*.ts");
  return !isPlace || existsSync(path.join(root, place));
}

/** Whether a file, folder or driver is that place, or lies in it. `*.ts` is every file that lies right in a folder. */
function isIn(name: string, place: string): boolean {
  if (place.endsWith("/*.ts")) return path.posix.dirname(name) === path.posix.dirname(place);
  return name === place || (place.endsWith("/") && name.startsWith(place));
}

function circleFaults(): readonly string[] {
  return circles().map((circle) => `import each other: ${circle.join(" ")}`);
}

/** Files that reach each other by imports, by the algorithm of Tarjan. */
function circles(): readonly (readonly string[])[] {
  const found: (readonly string[])[] = [];
  const numbers = new Map<string, number>();
  const stack: string[] = [];
  const lowest = (file: string): number => {
    const number = numbers.size;
    numbers.set(file, number);
    stack.push(file);
    let low = number;
    for (const { to } of imports.get(file) ?? []) {
      if (!imports.has(to)) continue;
      const known = numbers.get(to);
      if (known === undefined) low = Math.min(low, lowest(to));
      else if (stack.includes(to)) low = Math.min(low, known);
    }
    if (low === number) {
      const circle = stack.splice(stack.indexOf(file));
      if (circle.length > 1) found.push(circle.toSorted());
    }
    return low;
  };
  for (const file of imports.keys()) if (!numbers.has(file)) lowest(file);
  return found;
}

function limitFaults(): readonly string[] {
  const folders = Map.groupBy([...limited, ...tests], (file) => path.posix.dirname(file));
  const sizes = [
    ...limited.map((file) => [file, linesOf(file), MAX_LINES] as const),
    ...[...folders].map(([folder, its]) => [folder, its.length, MAX_FILES] as const),
  ];
  return sizes
    .filter(([, size, limit]) => size > limit)
    .map(([name, size, limit]) => `${name}: ${size} is above the limit of ${limit}`);
}

function linesOf(file: string): number {
  return readFileSync(path.join(root, file), "utf8").split("\n").length - 1;
}
