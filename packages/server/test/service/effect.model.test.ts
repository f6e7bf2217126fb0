import {
  earlierMemory,
  lostNodes,
  memoryMsOf,
  NEVER_STOPPED,
  type NodeRow,
  type NodeRowKey,
  type StorePart,
  type Tag,
} from "@idmint/core/server";
import { settingsOf } from "@idmint/testkit/store-suite";
import fc from "fast-check";
import { expect, test } from "vitest";
import { NodeWatch } from "../../src/service/node-watch.ts";
import { type Obeyed, Presence } from "../../src/service/presence.ts";
import { noRecord } from "./no-record.ts";

/** Clocks of two machines run differently by less than the hundredth for which servers wait longer. */
const MOST_DRIFT = 0.0045;
const INTERVAL_MS = 1_000;
const TIMEOUT_MS = 1_000;
const ROUNDING_MS = 0.001;

/** A server, or an operator who asked it, says that from a moment on nobody has ids of before a revision. */
interface Said {
  readonly revision: bigint;
  readonly fromMs: number;
}

/** The store with one tag, and true time, which no server has. */
class World {
  now = 0;
  revision = 1n;
  incarnation = "h0";
  tag = tagAt(1n, 1_000);
  rows = new Map<string, NodeRow>();
  readonly said: Said[] = [];
  servers: readonly Server[] = [];
  #renewals = 0n;
  #events: { readonly atMs: number; readonly run: () => void }[] = [];

  later(ms: number, run: () => void): void {
    this.#events.push({ atMs: this.now + ms, run });
  }

  pass(ms: number): void {
    const until = this.now + ms;
    for (;;) {
      const next = this.#events.toSorted((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > until) break;
      this.#events = this.#events.filter((one) => one !== next);
      this.now = next.atMs;
      next.run();
    }
    this.now = until;
  }

  /** What was said stays true. */
  judge(server: Server): void {
    for (const { revision, fromMs } of this.said) {
      const last = server.lastUse(revision);
      if (last > fromMs + ROUNDING_MS)
        throw new Error(`revision ${revision} is in effect at ${fromMs}, and ids live to ${last}`);
    }
  }

  renew(row: Omit<NodeRow, "renewals">): void {
    this.rows.set(row.id, { ...row, renewals: ++this.#renewals });
  }

  forget(keys: readonly NodeRowKey[]): void {
    for (const { id, renewals } of keys)
      if (this.rows.get(id)?.renewals === renewals) this.rows.delete(id);
  }

  /** An operator has the tag changed by a server. */
  change(maxAgeMs: number | undefined, isEarlierOver: boolean): void {
    const old = this.tag;
    const revision = ++this.revision;
    const kind = maxAgeMs === undefined ? old.kind : settingsOf("t", { maxAgeMs }).kind;
    const earlier = earlierMemory(old, kind, revision, isEarlierOver);
    const { earlier: _, ...rest } = old;
    this.tag = { ...rest, kind, revision, ...(earlier === undefined ? {} : { earlier }) };
  }

  /** It is accepted in a new history; rows of servers may be lost. */
  accept(areRowsLost: boolean, longestMs: number | undefined): void {
    this.incarnation = `h${Number(this.incarnation.slice(1)) + 1}`;
    if (areRowsLost) this.rows.clear();
    const row = lostNodes(this.incarnation, longestMs);
    this.rows.set(row.id, row);
  }
}

function tagAt(revision: bigint, maxAgeMs: number): Tag {
  return { ...settingsOf("t", { maxAgeMs }), revision } as Tag;
}

function ignore(): void {}

/** How long the parts of a poll take: the way there, from the snapshot to the server's row, and back; and until the next one. */
type Ways = readonly [there: number, within: number, back: number, pause: number];

interface Settings {
  readonly id: string;
  readonly rate: number;
  readonly maxOfflineMs: number | undefined;
  /** Of one poll after the other, again and again. */
  readonly ways: readonly Ways[];
}

/** A server that polls, and all programs that have ids of it: their clocks are as slow as may be. */
class Server {
  readonly #world: World;
  readonly #rate: number;
  readonly #ways: readonly Ways[];
  readonly #presence: Presence;
  readonly #watch: NodeWatch;
  #polls = 0;
  #isCutUntil = 0;
  #known: Tag | undefined;
  /** What was granted before it obeyed a change, and by when all of it is too old. */
  readonly #before: { readonly revision: bigint; readonly endsAt: number }[] = [];
  #obeyed: Obeyed = { incarnation: "", revision: 0n };

  constructor(world: World, { id, rate, maxOfflineMs, ways }: Settings) {
    this.#world = world;
    this.#rate = rate;
    this.#ways = ways;
    const clock = { now: () => world.now * rate };
    const node = { id, instance: id, version: "", zone: "", startedAtMs: 0, maxOfflineMs };
    const rest = { partsOf: undefined, proofPatienceMs: 0, issuesUnproved: true, firstCount: 0n };
    this.#presence = new Presence({ node, record: noRecord(), clock, emit: ignore, ...rest });
    const store = {
      forgetNodes: (keys: readonly NodeRowKey[]) => {
        world.forget(keys);
        return Promise.resolve(keys.length);
      },
    };
    const presence = this.#presence;
    this.#watch = new NodeWatch({ store, presence, clock, emit: ignore, onTold: ignore });
  }

  /** For so long nothing of it reaches the store. */
  cut(ms: number): void {
    this.#isCutUntil = this.#world.now + ms;
  }

  /** As often as a server does. */
  poll(): void {
    const world = this.#world;
    const ways = this.#ways[this.#polls++ % this.#ways.length];
    const [there, within, back, pause] = ways ?? [0, 0, 0, INTERVAL_MS];
    const tookMs = Math.min(there + within + back, TIMEOUT_MS);
    world.later(Math.max(pause, tookMs), () => this.poll());
    if (world.now < this.#isCutUntil) return;
    const sentAt = world.now * this.#rate;
    const { node, obeyed, incarnation } = this.#presence.renewal(this.#obeyed, 0n);
    const row = { ...node, obeyed, incarnation, traffic: 0n, isProved: true };
    const { wantsNodes } = this.#watch;
    world.later(there, () => {
      const { revision, tag } = world;
      const nodes = wantsNodes ? [...world.rows.values()] : undefined;
      const part = { name: "", incarnation: world.incarnation, revision, nodes, isRenewed: true };
      world.later(within, () => {
        if (part.incarnation !== world.incarnation) return;
        world.renew(row);
        if (there + within + back >= TIMEOUT_MS) return;
        world.later(back, () => {
          const answer = { ...part, traffic: [], issuing: NEVER_STOPPED };
          if (part.incarnation === world.incarnation) this.#answered(answer, tag, sentAt);
        });
      });
    });
  }

  #answered(part: StorePart, tag: Tag, sentAt: number): void {
    const acknowledged = this.#presence.acknowledged([part], sentAt);
    this.#obey(tag);
    this.#obeyed = part;
    this.#presence.obeyed(acknowledged);
    // It may be cut off from now on.
    this.#world.judge(this);
    this.#watch.saw([part], sentAt);
  }

  #obey(tag: Tag): void {
    const known = this.#known;
    if (known !== undefined && known.revision < tag.revision) {
      const endsAt = this.#heldUntil(Math.min(this.#world.now, this.#issuesUntil), known);
      this.#before.push({ revision: known.revision, endsAt });
    }
    if (known === undefined || known.revision < tag.revision) this.#known = tag;
  }

  /** A server reads the tag and says by when its last change is in effect. */
  say(): void {
    const world = this.#world;
    this.#watch.note(world.tag);
    const { at } = this.#watch.effectOf(world.tag);
    if (at === undefined) return;
    world.said.push({ revision: world.tag.revision, fromMs: at / this.#rate });
    world.servers.forEach((server) => world.judge(server));
  }

  change(maxAgeMs: number | undefined): void {
    const world = this.#world;
    this.#watch.note(world.tag);
    world.change(maxAgeMs, this.#watch.isEarlierOver(world.tag));
    this.say();
  }

  get #issuesUntil(): number {
    const { parts } = this.#presence.until;
    return Math.max(-Infinity, ...parts.map(([, until]) => until)) / this.#rate;
  }

  /** What a program was given at that moment it uses for so long. */
  #heldUntil(fromMs: number, tag: Tag): number {
    return fromMs + memoryMsOf(tag.kind) / (1 - MOST_DRIFT);
  }

  /** By when nobody has ids any more that this server issued, or will issue unless it hears more, before a revision. */
  lastUse(revision: bigint): number {
    const ends = this.#before.filter((one) => one.revision < revision).map(({ endsAt }) => endsAt);
    const known = this.#known;
    if (known !== undefined && known.revision < revision)
      ends.push(this.#heldUntil(this.#issuesUntil, known));
    return Math.max(-Infinity, ...ends);
  }
}

const SERVERS = 3;
const anyServer = fc.nat(SERVERS - 1);
const anyWay = fc.oneof(fc.nat(20), fc.nat(400));
const anyAge = fc.constantFrom(1, 1_000, 60_000);
const anyMs = fc.oneof(fc.nat(300), fc.nat(1_500));
/** Of most servers of a fleet it is the same. */
const anyOffline = fc.constantFrom(1_000, 3_000, 60_000);

const anyServerSettings = fc.record({
  drift: fc.constantFrom(-1, 1),
  other: fc.oneof(
    { weight: 8, arbitrary: fc.constant("same" as const) },
    { weight: 6, arbitrary: anyOffline },
    { weight: 1, arbitrary: fc.constant(undefined) },
  ),
  beginsMs: fc.oneof(fc.constant(0), fc.nat(10_000)),
  ways: fc.array(fc.tuple(anyWay, anyWay, anyWay, fc.constantFrom(50, INTERVAL_MS)), {
    minLength: 4,
    maxLength: 12,
  }),
});

const anyStep = fc.record({
  does: fc.oneof(
    { weight: 50, arbitrary: fc.constantFrom("change", "say", "say", "cut") },
    { weight: 1, arbitrary: fc.constant("accept") },
  ),
  server: anyServer,
  maxAgeMs: fc.option(anyAge, { nil: undefined }),
  ms: anyMs,
  waitMs: anyMs,
  /** Of the time that servers go on alone, besides. */
  share: fc.constantFrom(0, 0, 0, 0, 0.4, 0.95),
});

const anyFleet = fc.record({
  offlineMs: anyOffline,
  settings: fc.array(anyServerSettings, { minLength: SERVERS, maxLength: SERVERS }),
  steps: fc.array(anyStep, { minLength: 20, maxLength: 60, size: "max" }),
});

function longestOf(offline: readonly (number | undefined)[]): number | undefined {
  const known = offline.filter((ms) => ms !== undefined);
  return known.length < offline.length ? undefined : Math.max(...known);
}

test("from the moment that a server says on, nobody has ids of before a change", () => {
  let said = 0;
  const walk = fc.property(anyFleet, ({ offlineMs, settings, steps }) => {
    const world = new World();
    const offline = settings.map(({ other }) => (other === "same" ? offlineMs : other));
    const longestMs = longestOf(offline);
    const servers = settings.map(({ drift, beginsMs, ways }, at) => {
      const rate = 1 + drift * MOST_DRIFT;
      const server = new Server(world, { id: `s${at}`, rate, maxOfflineMs: offline[at], ways });
      world.later(beginsMs, () => server.poll());
      return server;
    });
    world.servers = servers;
    for (const { does, server, ms, maxAgeMs, waitMs, share } of steps) {
      if (does === "change") servers[server]?.change(maxAgeMs);
      else if (does === "say") servers[server]?.say();
      else if (does === "cut") servers[server]?.cut(ms + 4 * share * offlineMs);
      else world.accept(ms % 2 === 0, longestMs);
      world.pass(waitMs + share * offlineMs);
    }
    said += world.said.length;
  });
  fc.assert(walk, { numRuns: 600, endOnFailure: true });
  expect(said).toBeGreaterThan(400);
});
