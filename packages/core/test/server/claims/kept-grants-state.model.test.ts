// What a server knows again after it was killed at any moment, by the lines that it had written.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type GrantKeeper,
  idsLine,
  keptGrantsFrom,
  keptGrantsText,
  type KeptRow,
  type KeptTag,
  rowLine,
  storeLine,
  VersionGuard,
} from "../../../src/server/index.ts";

const TAGS = ["a", "b", "c"] as const;
const PERIODS = ["", "2026-11-27", "2026-11-28"] as const;

type Step =
  | { readonly do: "grant"; readonly tag: string; readonly period: string; readonly count: number }
  | { readonly do: "give back"; readonly tag: string; readonly count: number }
  | { readonly do: "renew" | "accept" | "compact" | "die" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("grant" as const),
      tag: fc.constantFrom(...TAGS),
      period: fc.constantFrom(...PERIODS),
      count: fc.integer({ min: 1, max: 9 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("give back" as const),
      tag: fc.constantFrom(...TAGS),
      count: fc.integer({ min: 1, max: 9 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("renew" as const, "accept" as const, "compact" as const, "die" as const),
    }),
  },
);

/** A server over its lives, and a store that grants above its floors. */
class Server {
  text: string;
  guard = new VersionGuard();
  incarnation = "one";
  version = 0n;
  renewals = 0n;
  rows: readonly KeptRow[] = [];
  /** Tags that were granted from since the last row, and between it and the one before. */
  recent = new Set<string>();
  before = new Set<string>();
  readonly floors = new Map<string, bigint>();

  constructor() {
    this.text = keptGrantsText({
      storeId: "s",
      incarnation: "",
      sinceMs: 7,
      isWhole: true,
      rows: [],
      tags: [],
      recent: 0,
    });
    this.live();
  }

  live(): void {
    const kept = keptGrantsFrom(this.text);
    if (kept === undefined) throw new Error("nothing is found");
    expect(kept).toMatchObject({ sinceMs: 7, isWhole: true, rows: this.rows });
    this.guard = new VersionGuard();
    const keeper: GrantKeeper = {
      granted: (tag, highest, version) => {
        this.text += idsLine(tag, highest, version);
        this.recent.add(tag);
      },
    };
    this.guard.resume(kept.incarnation, kept.tags.values(), keeper);
    this.guard.entered(this.incarnation);
    this.text =
      keptGrantsText({ ...kept, tags: [...kept.tags.values()] }) + storeLine("s", this.incarnation);
  }

  grant(tag: string, period: string, count: number): void {
    const key = `${tag} ${period}`;
    const first = (this.floors.get(key) ?? 0n) + 1n;
    const last = first + BigInt(count) - 1n;
    this.version++;
    const epoch = BigInt(this.incarnation.length);
    const seen = this.guard.seen(tag);
    expect(this.guard.admitGrant(tag, seen, { version: this.version, epoch })).toBe(true);
    expect(this.guard.admitIds(tag, { epoch, first, last, period })).toBe("new");
    this.floors.set(key, last);
  }

  giveBack(tag: string, count: number): void {
    const granted = [...this.guard.kept()].find((kept) => kept.tag === tag)?.granted;
    if (granted === undefined) return;
    const from = granted.last - BigInt(count) + 1n;
    if (from < 1n) return;
    this.guard.giveBack(tag, { from, to: granted.last });
    this.floors.set(`${tag} ${granted.period}`, from - 1n);
  }

  renew(): void {
    this.renewals++;
    const row = { part: "", id: "own", history: this.incarnation, renewals: this.renewals };
    this.rows = [{ ...row, revision: "", storeMs: 1, atMs: 2.5 }];
    this.text += this.rows.map(rowLine).join("");
    this.before = this.recent;
    this.recent = new Set();
  }

  compact(): void {
    this.renew();
    const [storeId, incarnation] = ["s", this.incarnation];
    const all = [...this.guard.kept()];
    const isRecent = ({ tag }: KeptTag): boolean => this.before.has(tag);
    const tags = [...all.filter((tag) => !isRecent(tag)), ...all.filter(isRecent)];
    const recent = this.before.size;
    this.text = keptGrantsText({
      storeId,
      incarnation,
      sinceMs: 7,
      isWhole: true,
      rows: this.rows,
      tags,
      recent,
    });
    // Which of them were granted from before the row is not told any more.
    this.recent = this.before;
    this.before = new Set();
  }

  accept(): void {
    this.incarnation += "+";
    this.guard.startHistory();
    this.version = 0n;
    this.text += storeLine("s", this.incarnation);
  }
}

test("a killed server knows all that it was granted, and its row, whatever of a last line is missing", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.nat(), (steps, cut) => {
      const server = new Server();
      for (const each of steps) {
        if (each.do === "grant") server.grant(each.tag, each.period, each.count);
        else if (each.do === "give back") server.giveBack(each.tag, each.count);
        else if (each.do === "renew") server.renew();
        else if (each.do === "accept") server.accept();
        else if (each.do === "compact") server.compact();
        else {
          // Of a line that was being written when it was killed some is there.
          const half = storeLine("s", "x").slice(0, cut % 5);
          const claims = new Set(
            [...server.guard.claims()].map((claim) => JSON.stringify(claim, texts)),
          );
          const seen = TAGS.map((tag) => server.guard.seen(tag));
          server.text += half;
          const kept = keptGrantsFrom(server.text);
          const names = [...(kept?.tags.keys() ?? [])];
          if (server.rows.length > 0) {
            expect(new Set(names.slice(names.length - (kept?.recent ?? 0)))).toEqual(
              new Set([...server.before, ...server.recent]),
            );
          }
          server.live();
          expect(
            new Set([...server.guard.claims()].map((claim) => JSON.stringify(claim, texts))),
          ).toEqual(claims);
          expect(TAGS.every((tag, at) => server.guard.seen(tag) <= (seen[at] ?? 0n))).toBe(true);
        }
      }
    }),
    { numRuns: 500 },
  );
});

test("a text that is spoiled, or of another release, says nothing", () => {
  const server = new Server();
  server.grant("a", "", 3);
  const { text } = server;
  expect(keptGrantsFrom("")).toBeUndefined();
  expect(keptGrantsFrom(text.replace("ids", "idz"))).toBeUndefined();
  expect(keptGrantsFrom(text.slice(10))).toBeUndefined();
  expect(keptGrantsFrom(`${text}["row","","own"]\n`)).toBeUndefined();
});

function texts(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
