// A client against a simulated fleet, under any order of events that fast-check finds.
import { IdmintError, type Segment } from "@idmint/core";
import { type AllocateSegmentResponse, Order } from "@idmint/proto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type FakeWorld, fakeWorld, type PendingAllocate, settle } from "./fake-transport.ts";
import { UNTOLD } from "./support.ts";

type Outcome = "answered" | "lost" | "refused" | "unavailable";
type Action =
  | { readonly do: "next" | "nextSync" | "probe" | "tick" }
  | { readonly do: "take"; readonly count: number }
  | { readonly do: "settle"; readonly outcome: Outcome }
  | { readonly do: "advance"; readonly by: number }
  | { readonly do: "poll"; readonly server: number }
  | { readonly do: "wait"; readonly ms: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom({ do: "next" }, { do: "nextSync" } as const) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("take" as const), count: fc.nat(30) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      outcome: fc.constantFrom<Outcome>("answered", "answered", "lost", "refused", "unavailable"),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("advance" as const), by: fc.nat(200) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("poll" as const), server: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(3_000) }) },
  { weight: 1, arbitrary: fc.constantFrom({ do: "tick" }, { do: "probe" } as const) },
) as fc.Arbitrary<Action>;

interface Block {
  next: bigint;
  to: bigint;
  epoch: bigint;
}

const ADDRESSES = ["a:1", "b:1", "c:1"];

/** Three servers on one store; each knows the epoch of its last poll, and carves from a block of its own. */
class Fleet {
  readonly #order: Order;
  #floor = 0n;
  #epoch = 1n;
  readonly #servers = [1n, 1n, 1n].map((epoch) => ({
    epoch,
    block: undefined as Block | undefined,
  }));
  readonly epochOf = new Map<bigint, bigint>();

  constructor(order: Order) {
    this.#order = order;
  }

  advance(by: number): void {
    this.#floor += BigInt(by);
    this.#epoch++;
  }

  poll(server: number): void {
    this.#servers[server]!.epoch = this.#epoch;
  }

  allocate({ endpoint, request }: PendingAllocate): AllocateSegmentResponse {
    const server = this.#servers[ADDRESSES.indexOf(endpoint)]!;
    const count = BigInt(request.count);
    const bound = this.#order === Order.PER_CLIENT ? request.after : 0n;
    expect(bound).toBeLessThanOrEqual(this.#floor);
    let { block } = server;
    if (
      block === undefined ||
      block.epoch !== server.epoch ||
      block.next <= bound ||
      block.next + count - 1n > block.to
    ) {
      // A grant tells the epoch, so a server that had not polled knows it now.
      server.epoch = this.#epoch;
      const size = count > 50n ? count : 50n;
      block = { next: this.#floor + 1n, to: this.#floor + size, epoch: server.epoch };
      this.#floor += size;
      server.block = block;
    }
    const base = block.next;
    block.next += count;
    for (let id = base; id < block.next; id++) this.epochOf.set(id, block.epoch);
    return {
      segments: [{ base, count: request.count, increment: 1 }],
      epoch: block.epoch,
      releaseToken: "",
      maxAge: { seconds: 5n, nanos: 0 },
      order: this.#order,
      maxCount: 10_000_000,
      ...UNTOLD,
    };
  }
}

class Run {
  readonly #fleet: Fleet;
  readonly #isOrdered: boolean;
  readonly #world: FakeWorld;
  readonly #issued: bigint[] = [];
  readonly #waiting: Promise<unknown>[] = [];
  #seenEpoch = 0n;

  constructor(order: Order) {
    this.#fleet = new Fleet(order);
    this.#isOrdered = order === Order.PER_CLIENT;
    this.#world = fakeWorld({ addresses: ADDRESSES, min: 5, max: 20, maxWaiters: 8 });
  }

  async run(actions: readonly Action[]): Promise<void> {
    for (const each of actions) {
      this.#act(each);
      await settle();
      // One load per tag, hence one request.
      expect(this.#world.transport.pending.length).toBeLessThanOrEqual(1);
    }
    const closing = this.#world.client.close();
    await settle();
    this.#world.time.advance(500);
    await closing;
    await Promise.all(this.#waiting);
    expect(new Set(this.#issued).size).toBe(this.#issued.length);
    if (this.#isOrdered) {
      expect(this.#issued).toEqual(this.#issued.toSorted((a, b) => Number(a - b)));
    }
    // Nothing is left that could fire later.
    expect(this.#world.transport.pending).toEqual([]);
  }

  #act(each: Action): void {
    const { client, transport, time, tick } = this.#world;
    const tag = client.tag("t");
    switch (each.do) {
      case "next":
        this.#waiting.push(this.#watch(tag.next().then((id) => this.#note(id))));
        break;
      case "nextSync":
        try {
          this.#note(tag.nextSync());
        } catch (error) {
          expect(error).toBeInstanceOf(IdmintError);
        }
        break;
      case "take":
        this.#waiting.push(
          this.#watch(tag.take(each.count).then((ranges) => this.#noteAll(ranges))),
        );
        break;
      case "settle":
        this.#settleOne(each.outcome);
        break;
      case "advance":
        this.#fleet.advance(each.by);
        break;
      case "poll":
        this.#fleet.poll(each.server);
        break;
      case "wait":
        time.advance(each.ms);
        break;
      case "tick":
        tick();
        break;
      case "probe":
        transport.probes.shift()?.answer(true);
        break;
    }
  }

  async #watch(call: Promise<unknown>): Promise<void> {
    await call.catch((error: unknown) => {
      // An expectation that failed is no refusal.
      if (!(error instanceof IdmintError)) throw error;
    });
  }

  #settleOne(outcome: Outcome): void {
    const call = this.#world.transport.pending.shift();
    if (call === undefined) return;
    // `after` covers every id that was issued.
    const highest = this.#issued.reduce((max, id) => (id > max ? id : max), 0n);
    if (this.#isOrdered) expect(call.request.after).toBeGreaterThanOrEqual(highest);
    if (outcome === "unavailable") {
      call.fail(new IdmintError("SERVER_UNAVAILABLE", "away"));
      return;
    }
    if (outcome === "refused") {
      call.fail(new IdmintError("OVERLOADED", "too much"));
      return;
    }
    const response = this.#fleet.allocate(call);
    if (outcome === "lost") {
      call.fail(new IdmintError("SERVER_UNAVAILABLE", "the connection broke"));
      return;
    }
    if (response.epoch > this.#seenEpoch) this.#seenEpoch = response.epoch;
    call.answer(response);
  }

  #note(id: bigint): void {
    this.#issued.push(id);
    // Only ids that were granted and arrived, and of no epoch below the highest that an answer told.
    expect(this.#fleet.epochOf.get(id)).toBe(this.#seenEpoch);
  }

  #noteAll(segments: readonly Segment[]): void {
    for (const { base, count } of segments) {
      for (let id = base; id < base + BigInt(count); id++) this.#note(id);
    }
  }
}

for (const order of [Order.UNORDERED, Order.PER_CLIENT] as const) {
  const name = order === Order.PER_CLIENT ? "PER_CLIENT" : "UNORDERED";
  test(`whatever fails, a ${name} tag issues no id twice, out of order, or of an old epoch`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 80 }), async (actions) => {
        await new Run(order).run(actions);
      }),
      { numRuns: 500 },
    );
  });
}
