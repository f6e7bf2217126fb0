// Moves of a tag between databases that crash after, before and within any step, with grants and restores in between.
import { IdmintError } from "@idmint/core";
import type { Tag } from "@idmint/core/server";
import { settingsOf } from "@idmint/testkit/store-suite";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createdTag, type Stamp } from "../../../src/store/shared/change.ts";
import type { PlacedTag } from "../../../src/store/shared/placed-tag.ts";
import { pointEverywhere, type Rows } from "../../../src/store/spread/fleet.ts";
import { homeOf } from "../../../src/store/spread/home.ts";
import { Locator } from "../../../src/store/spread/locator.ts";
import { moveTag, type MovePlace } from "../../../src/store/spread/move.ts";
import { isHere } from "../../../src/store/spread/move-state.ts";

const NAMES = ["a", "b", "c"] as const;
const GAP = 1_000n;

class Crash extends Error {}

/** One database, as its rows; one tag in it. */
class FakeDatabase implements MovePlace, Rows {
  row: PlacedTag | undefined;
  revision = 0n;
  incarnation = 1;
  backup: { row: PlacedTag | undefined; revision: bigint } = { row: undefined, revision: 0n };
  fenced = false;
  /** Called before and after each write; it may crash, and let others go on in between. */
  onWrite: (when: "before" | "after") => Promise<void> = async () => undefined;

  async getRows(): Promise<readonly PlacedTag[]> {
    if (this.fenced) throw new IdmintError("STORE_EPOCH_CHANGED", "went back");
    return this.row === undefined ? [] : [this.row];
  }

  async pageOfRows(afterName: string): Promise<readonly PlacedTag[]> {
    return this.row === undefined || afterName !== "" ? [] : [this.row];
  }

  async point(pointers: Parameters<Rows["point"]>[0]): Promise<void> {
    for (const { row, in: database, isHome } of pointers) {
      const version = row.tag.version > 0n ? row.tag.version - 1n : 0n;
      if (this.row === undefined ? !isHome : this.row.tag.version >= version) continue;
      const base = this.row?.tag ?? row.tag;
      this.row = { tag: { ...base, version }, movedTo: database, moving: false };
    }
  }

  async rewriteTag(
    _name: string,
    decide: (row: PlacedTag | undefined, stamp: Stamp) => PlacedTag | undefined,
    incarnation?: string,
  ): Promise<void> {
    await this.onWrite("before");
    if (this.fenced) throw new IdmintError("STORE_EPOCH_CHANGED", "went back");
    if (incarnation !== undefined && incarnation !== String(this.incarnation)) {
      throw new IdmintError("STORE_UNAVAILABLE", "accepted anew");
    }
    const next = decide(this.row, { revision: this.revision + 1n, nowMs: 0 });
    if (next !== undefined) {
      this.row = next;
      if (next.tag.revision > this.revision) this.revision = next.tag.revision;
    }
    await this.onWrite("after");
  }

  async standing(): Promise<{ incarnation: string }> {
    return { incarnation: String(this.incarnation) };
  }

  grant(count: bigint): readonly bigint[] {
    const { row } = this;
    if (this.fenced || row === undefined || !isHere(row)) return [];
    const { floor, version } = row.tag;
    this.row = { ...row, tag: { ...row.tag, floor: floor + count, version: version + 1n } };
    return Array.from({ length: Number(count) }, (_, at) => floor + BigInt(at) + 1n);
  }

  restore(): void {
    this.row = this.backup.row;
    this.revision = this.backup.revision;
    this.fenced = true;
  }

  accept(): void {
    this.fenced = false;
    this.incarnation++;
    if (this.row === undefined) return;
    const { tag, movedTo } = this.row;
    const version = tag.version + (movedTo === "" ? 1n : 0n);
    this.row = { ...this.row, tag: { ...tag, floor: tag.floor + GAP, version } };
  }
}

interface Move {
  readonly do: "move";
  readonly to: number;
  readonly crashAt: number;
  readonly second: number;
}

type Step =
  | { do: "grant"; at: number; count: number }
  | Move
  | { do: "backup" | "restore"; at: number };

const at = fc.nat(NAMES.length - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("grant" as const),
      at,
      count: fc.integer({ min: 1, max: 9 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("move" as const),
      to: at,
      // Writes of a move are counted before and after each: up to eight places to crash in.
      crashAt: fc.nat(12),
      // Where another operator moves the tag as well at every write of the first; from 3 to 5: what goes back then.
      second: fc.nat(9),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("backup" as const, "restore" as const), at }),
  },
);

class World {
  readonly databases = new Map<string, FakeDatabase>(
    NAMES.map((name) => [name, new FakeDatabase()]),
  );
  readonly issued = new Set<bigint>();
  moves = 0;

  readonly hasRestores: boolean;

  constructor(hasRestores: boolean) {
    this.hasRestores = hasRestores;
    const home = this.at(homeOf(NAMES, "t"));
    const { tag } = createdTag(undefined, settingsOf("t"), { revision: 1n, nowMs: 0 });
    home.row = { tag, movedTo: "", moving: false };
    home.revision = 1n;
    for (const each of this.databases.values()) this.backUp(each);
  }

  at(which: number | string): FakeDatabase {
    const name = typeof which === "string" ? which : (NAMES[which] ?? "a");
    const found = this.databases.get(name);
    if (found === undefined) throw new Error(`no database ${name}`);
    return found;
  }

  backUp(database: FakeDatabase): void {
    database.backup = { row: database.row, revision: database.revision };
  }

  grant(database: FakeDatabase, count: number): void {
    for (const id of database.grant(BigInt(count))) {
      expect(this.issued.has(id)).toBe(false);
      this.issued.add(id);
    }
  }

  /** Everybody asks every database all the time: a tag is granted in one place, or in none. */
  grantEverywhere(): void {
    for (const database of this.databases.values()) this.grant(database, 1);
    const open = [...this.databases.values()].filter(
      ({ row, fenced }) => !fenced && row !== undefined && isHere(row),
    );
    expect(open.length).toBeLessThanOrEqual(1);
    if (open.length === 0 || this.hasRestores) return;
    const others = [...this.databases.values()].filter(({ row }) => row?.moving === true);
    expect(others).toEqual([]);
  }

  async move({ to, crashAt, second }: Move): Promise<void> {
    let writes = 0;
    let isNested = false;
    const onWrite = async (): Promise<void> => {
      this.grantEverywhere();
      if (isNested) return;
      if (writes++ === crashAt) throw new Crash();
      isNested = true;
      if (second < NAMES.length) await this.tryMove(second);
      else if (this.hasRestores && second < 2 * NAMES.length)
        await this.goBack(second - NAMES.length);
      isNested = false;
      this.grantEverywhere();
    };
    for (const database of this.databases.values()) database.onWrite = onWrite;
    await this.tryMove(to);
    for (const database of this.databases.values()) database.onWrite = async () => undefined;
  }

  async tryMove(to: number): Promise<void> {
    try {
      const { moved } = await moveTag(this.databases, "t", NAMES[to] ?? "a");
      if (moved) this.moves++;
    } catch (error) {
      if (!(error instanceof Crash || error instanceof IdmintError)) throw error;
    }
  }

  /** A database is restored, and an operator accepts it, with all others there. */
  async goBack(which: number): Promise<void> {
    const database = this.at(which);
    database.restore();
    this.grantEverywhere();
    await pointEverywhere(this.databases, [NAMES[which] ?? "a"]);
    database.accept();
    this.backUp(database);
  }
}

async function run(steps: readonly Step[], hasRestores: boolean): Promise<World> {
  const world = new World(hasRestores);
  for (const one of steps) {
    if (one.do === "grant") world.grant(world.at(one.at), one.count);
    else if (one.do === "move") await world.move(one);
    else if (!hasRestores) continue;
    else if (one.do === "backup") world.backUp(world.at(one.at));
    else await world.goBack(one.at);
    world.grantEverywhere();
  }
  return world;
}

test("a move that crashes anywhere repeats nothing, and is finished by the next run", async () => {
  let moves = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const world = await run(steps, false);
      const locator = new Locator(NAMES, async (member) => world.at(member).getRows());
      const found = (await locator.find(["t"])).get("t");
      const tag = found?.tag as Tag;
      expect(tag.name).toBe("t");
      if (found?.isHere !== true) {
        const unfinished = [...world.databases.values()].find(({ row }) => row?.moving === true);
        const leaving = [...world.databases.values()].find(
          ({ row }) => row !== undefined && row.moving && row.movedTo !== "",
        );
        expect(unfinished).toBeDefined();
        const to = leaving?.row?.movedTo ?? found?.member ?? "";
        await moveTag(world.databases, "t", to);
      }
      const before = world.issued.size;
      world.grantEverywhere();
      expect(world.issued.size).toBe(before + 1);
      moves += world.moves;
    }),
    { numRuns: 300 },
  );
  expect(moves).toBeGreaterThan(100);
});

test("nor does one in databases that are restored and accepted with a gap", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      await run(steps, true);
    }),
    { numRuns: 500 },
  );
});
