import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFailed, onTestFinished, test } from "vitest";
import { afterFile } from "../src/after-file.ts";
import { Fleet, type FleetOptions } from "../src/fleet/fleet.ts";
import { TestPostgres } from "../src/postgres.ts";

/** IDMINT_LONG=1 runs the same tests for as long as a release wants it. */
export const isLong: boolean = process.env["IDMINT_LONG"] === "1";

/** Path of a SQLite file in a folder of its own, gone after the last test; nothing is there yet. */
export async function sqliteFile(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "idmint-store-"));
  afterFile(() => rmSync(folder, { recursive: true, force: true }));
  return path.join(folder, "idmint.db");
}

/** A PostgreSQL of the test's own, on disk as in production. */
export async function ownPostgres(
  settings: Readonly<Record<string, string>> = {},
): Promise<TestPostgres> {
  const postgres = await TestPostgres.start({ durable: true, settings });
  onTestFinished(() => postgres.close());
  return postgres;
}

/** A fleet that ends with the test; what its servers said is shown when the test fails, and none may crash by itself. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const fleet = await Fleet.start(options);
  onTestFinished(async () => {
    await fleet.close();
    fleet.assertNoneCrashed();
  });
  onTestFailed(() => console.log(fleet.describe()));
  return fleet;
}

/** Some of many alike, in their order: all of them with IDMINT_LONG=1, else so many. The seed chooses. */
export function someOf<T>(count: number, all: readonly T[]): readonly T[] {
  if (isLong) return all;
  const { below } = seededRandom();
  const places = new Set<number>();
  while (places.size < Math.min(count, all.length)) places.add(below(all.length));
  return all.filter((_, place) => places.has(place));
}

/** Declares `of` tests that are alike, of which a run takes so many: see `someOf`. */
export function someTests(
  count: number,
  of: number,
): (name: string, options: { timeout: number }, run: () => Promise<void>) => void {
  const taken = new Set(someOf(count, [...Array(of).keys()]));
  let declared = 0;
  return (name, options, run) => {
    const declare = taken.has(declared++) ? test : () => undefined;
    declare(name, options, run);
  };
}

/** Random numbers from a seed: that of the run, which the commit chooses (vitest.config.ts), or `its`, that of one round. */
export function seededRandom(its?: number): {
  readonly seed: number;
  readonly below: (limit: number) => number;
} {
  const given = its ?? process.env["IDMINT_SEED"];
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  let state = seed;
  // mulberry32: small, and the same everywhere.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { seed, below: (limit) => Math.floor(next() * limit) };
}
