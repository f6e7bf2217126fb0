// What the published packages need: found in node_modules as it was installed, and compared with the lockfile.
import { existsSync, readFileSync, realpathSync } from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import { publishedPackages, root } from "./lib.ts";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/** A package, with what it needs itself. */
export interface Dependency {
  /** `name@version` */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly license: string | undefined;
  /** Of what the registry has: `sha512-…`. Undefined: it is of this repository. */
  readonly integrity: string | undefined;
  readonly needs: readonly string[];
}

interface Lockfile {
  readonly packages: Readonly<
    Record<string, { readonly resolution: { readonly integrity: string } }>
  >;
}

/** The manifest of the package in a folder. */
export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as Manifest;
}

/** The published packages and all that they need, by id. Throws when something is installed that the lockfile does not have. */
export function publishedDependencies(): ReadonlyMap<string, Dependency> {
  const lockfile = parse(readFileSync(path.join(root, "pnpm-lock.yaml"), "utf8")) as Lockfile;
  const found = new Map<string, Dependency>();
  const visit = (folder: string): string => {
    const manifest = readManifest(folder);
    const { name, version, license } = manifest;
    const id = `${name}@${version}`;
    if (found.has(id)) return id;
    const isOurs = !folder.includes(`${path.sep}node_modules${path.sep}`);
    const integrity = isOurs ? undefined : lockfile.packages[id]?.resolution.integrity;
    if (!isOurs && integrity === undefined) throw new Error(`the lockfile does not have ${id}`);
    const needs: string[] = [];
    found.set(id, { id, name, version, license, integrity, needs });
    const wanted = {
      ...neededPeers(manifest),
      ...manifest.optionalDependencies,
      ...manifest.dependencies,
    };
    for (const need of Object.keys(wanted)) {
      const at = installed(need, folder);
      if (at !== undefined) needs.push(visit(at));
      else if (manifest.dependencies?.[need] !== undefined) throw new Error(`${id} lacks ${need}`);
    }
    if (name === "idmint") needs.push(...bundled().map(visit));
    return id;
  };
  for (const name of publishedPackages) visit(path.join(root, "packages", name));
  return found;
}

/** Libraries that `idmint` carries in the files of the console. */
function bundled(): readonly string[] {
  const folder = path.join(root, "packages", "console");
  return Object.keys(readManifest(folder).dependencies ?? {}).map((name) => {
    const place = installed(name, folder);
    if (place === undefined) throw new Error(`the console lacks ${name}`);
    return place;
  });
}

/** Without those that are their user's own choice, and are installed here for tests. */
function neededPeers({ peerDependencies, peerDependenciesMeta }: Manifest): Record<string, string> {
  const peers = Object.entries(peerDependencies ?? {});
  return Object.fromEntries(
    peers.filter(([name]) => peerDependenciesMeta?.[name]?.optional !== true),
  );
}

/** Where Node would find a package; undefined for an optional one that is not for this machine. */
function installed(name: string, from: string): string | undefined {
  for (let folder = from; ; folder = path.dirname(folder)) {
    const place = path.join(folder, "node_modules", name);
    if (existsSync(place)) return realpathSync(place);
    if (folder === path.dirname(folder)) return undefined;
  }
}
