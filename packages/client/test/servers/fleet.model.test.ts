// Whoever stands at an address when a call is answered, and whichever list is told when: no id of another store is used.
import { IdmintError } from "@idmint/core";
import { Order } from "@idmint/proto";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ListedServer } from "../../src/servers/servers-state.ts";
import { type FakeWorld, fakeWorld, settle } from "../fake-transport.ts";

const SEED = "seed:1";
const LEARNED = ["n1:1", "n2:1", "f1:1", "f2:1"];
const TAGS = ["t", "u", "v"];
const NOBODY = new IdmintError("SERVER_UNAVAILABLE", "away");

/** Who stands at an address: a server of ours under a number that changes at a restart, somebody else, or nobody. */
type Standing = { readonly store: "ours" | "theirs"; readonly start: number } | undefined;

type Step =
  | { readonly type: "load"; readonly tag: string }
  | { readonly type: "answer"; readonly which: number; readonly refuses: boolean }
  | { readonly type: "stand"; readonly address: string; readonly who: "ours" | "theirs" | "away" }
  | { readonly type: "list"; readonly weights: readonly number[]; readonly missing: number }
  | { readonly type: "pass"; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant("load" as const), tag: fc.constantFrom(...TAGS) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant("answer" as const),
      which: fc.nat({ max: 20 }),
      refuses: fc.boolean().map((is) => is),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("stand" as const),
      address: fc.constantFrom(...LEARNED),
      who: fc.constantFrom("ours" as const, "ours" as const, "theirs" as const, "away" as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("list" as const),
      weights: fc.array(fc.constantFrom(0, 1, 100), { minLength: 4, maxLength: 4 }),
      missing: fc.nat({ max: 6 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant("pass" as const), ms: fc.nat({ max: 4_000 }) }),
  },
);

class Run {
  readonly world: FakeWorld = fakeWorld({ address: SEED, zone: "a", min: 5, max: 5 });
  readonly taken: bigint[] = [];
  readonly theirs = new Set<bigint>();
  /** Addresses that were asked for ids since the last look. */
  asked: string[] = [];
  #next = 1n;
  #version = 1;
  #weights: readonly number[] = [100, 100, 100, 100];
  #missing = 6;
  #starts = 0;
  readonly #standing = new Map<string, Standing>();
  /** The last name of each store's server at each address. */
  readonly #named = new Map<string, string>();

  constructor() {
    for (const address of [SEED, ...LEARNED]) this.stand(address, "ours");
  }

  stand(address: string, who: "ours" | "theirs" | "away"): void {
    const standing = who === "away" ? undefined : { store: who, start: this.#starts++ };
    this.#standing.set(address, standing);
    if (standing !== undefined) this.#named.set(`${who} ${address}`, this.#nameAt(address)!);
  }

  list(weights: readonly number[], missing: number): void {
    this.#version++;
    this.#weights = weights;
    this.#missing = missing;
  }

  /** All callers ask once a second, and everything is answered. */
  async live(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      for (const tag of TAGS) this.load(tag);
      await settle();
      for (let at = 0; at < 60 && this.answer(at, false); at++) await settle();
      this.world.time.advance(1_000);
      await settle();
    }
  }

  load(tag: string): void {
    const taken = this.world.client.tag(tag).take(5, { deadlineMs: 3_000 });
    taken.then(
      (segments) => this.taken.push(...segments.map(({ base }) => base)),
      () => undefined,
    );
  }

  /** Answers one of the calls that wait; false: none does. */
  answer(which: number, refuses: boolean): boolean {
    const { transport } = this.world;
    const { pending, proofs, listing, probes } = transport;
    const all = [pending, proofs, listing, probes].filter((each) => each.length > 0);
    if (all.length === 0) return false;
    const queue = all[which % all.length]!;
    const at = which % queue.length;
    if (queue === pending) this.#mint(pending.splice(at, 1)[0]!, refuses);
    else if (queue === proofs) {
      const { endpoint, answer } = proofs.splice(at, 1)[0]!;
      const name = this.#nameAt(endpoint);
      answer(name === undefined ? undefined : { nodeId: name, isServing: true });
    } else if (queue === listing) {
      const { endpoint, answer } = listing.splice(at, 1)[0]!;
      const who = this.#standing.get(endpoint);
      answer(
        who === undefined
          ? undefined
          : {
              nodeId: this.#nameAt(endpoint)!,
              version: this.#version,
              servers: this.#listOf(who),
            },
      );
    } else {
      const { endpoint, answer } = probes.splice(at, 1)[0]!;
      answer(this.#standing.get(endpoint) === undefined ? undefined : true);
    }
    return true;
  }

  #nameAt(address: string): string | undefined {
    const who = this.#standing.get(address);
    return who === undefined ? undefined : `${who.store} ${address} ${who.start}`;
  }

  /** Somebody else's store is a copy of ours: it has the rows of our servers too. */
  #listOf(who: NonNullable<Standing>): readonly ListedServer[] {
    const listed = LEARNED.filter((_, at) => at !== this.#missing);
    const rowsOf = (store: "ours" | "theirs"): readonly ListedServer[] =>
      listed.map((address, at) => ({
        nodeId: this.#named.get(`${store} ${address}`) ?? `${store} ${address} before`,
        address,
        zone: address.startsWith("n") ? "a" : "b",
        weight: this.#weights[at]!,
        isDraining: false,
        isAlive: true,
        heardAtMs: 0,
      }));
    return who.store === "ours" ? rowsOf("ours") : [...rowsOf("ours"), ...rowsOf("theirs")];
  }

  #mint(call: (typeof this.world.transport.pending)[number], refuses: boolean): void {
    const { endpoint, request } = call;
    this.asked.push(endpoint);
    const who = this.#standing.get(endpoint);
    if (who === undefined) {
      call.fail(NOBODY);
      return;
    }
    // Of another store: it has no such tag. Of ours: it drains.
    if (refuses) {
      call.fail(new IdmintError(who.store === "ours" ? "DRAINING" : "TAG_NOT_FOUND", "no"));
      return;
    }
    const base = this.#next;
    this.#next += BigInt(request.count);
    if (who.store === "theirs") this.theirs.add(base);
    call.answer({
      segments: [{ base, count: request.count, increment: 1 }],
      epoch: 1n,
      releaseToken: "",
      maxAge: { seconds: 600n, nanos: 0 },
      order: Order.UNORDERED,
      maxCount: 10_000_000,
      nodesVersion: who.store === "ours" ? this.#version : 77,
      nodeId: this.#nameAt(endpoint)!,
    });
  }
}

/** Ids are the first ones of segments of five; a call may get the later ones of two. */
function isOfTheirs(run: Run, id: bigint): boolean {
  for (let at = 0n; at < 5n; at++) if (run.theirs.has(id - at)) return true;
  return false;
}

test("no schedule of answers, lists, restarts and strangers lets an id of another store through", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 30, maxLength: 150, size: "max" }),
      async (steps) => {
        const run = new Run();
        await run.live(20);
        for (const each of steps) {
          if (each.type === "load") run.load(each.tag);
          else if (each.type === "answer")
            run.answer(each.which, each.refuses && each.which % 3 === 0);
          else if (each.type === "stand") run.stand(each.address, each.who);
          else if (each.type === "list") run.list(each.weights, each.missing);
          else run.world.time.advance(each.ms);
          await settle();
        }
        for (const id of run.taken) expect(isOfTheirs(run, id)).toBe(false);
        // However it went, once all is well again the callers are served, and at home.
        for (const address of LEARNED) run.stand(address, "ours");
        run.list([100, 100, 100, 100], 6);
        await run.live(50);
        run.asked = [];
        await run.live(10);
        for (const id of run.taken) expect(isOfTheirs(run, id)).toBe(false);
        expect(run.asked.length).toBeGreaterThan(0);
        for (const address of run.asked) expect(address.startsWith("n")).toBe(true);
      },
    ),
    { numRuns: 100 },
  );
});
