// Callers of one server over all of its lives: every kind of call that makes it write, each caller one call after the other.
import { setTimeout as pause } from "node:timers/promises";
import { createIdClient, type IdClient, IdmintError } from "@idmint/client";
import { TagState } from "@idmint/proto";
import { Api } from "../src/fleet/api.ts";
import { until } from "../src/fleet/until.ts";
import { OrderBook, TagBook } from "./book.ts";

/** Ids of every segment of `orders`: fixed, so that gaps can be reckoned. */
export const SEGMENT = 100;
/** Snowflake tags of which each life asks an id: each lease is kept in the server's file, and the file is synced. */
const LEASED_TAGS = 80;
const STEPS = 40;
const SEQUENCE_CALLERS = 4;
/** Only a server that hangs is slower. */
const DEADLINE_MS = 30_000;
const SDK_PAUSE_MS = 20;

/** What a call may be refused with while its server ends or starts; anything else is a fault. */
const EXPECTED: ReadonlySet<string> = new Set([
  "SEGMENT_NOT_READY",
  "STORE_UNAVAILABLE",
  "SERVER_UNAVAILABLE",
  "DRAINING",
]);

/** A program waits while there is no server, and begins before there are tags. */
const EXPECTED_BY_SDK = new Set([...EXPECTED, "DEADLINE_EXCEEDED", "TAG_NOT_FOUND"]);

/** The tags whose floors are reckoned with after each life. */
export type CountedTag = "orders" | "strict";

export class Callers implements AsyncDisposable {
  readonly books: Readonly<Record<"flakes" | "moved" | "sdk" | CountedTag, TagBook>> = {
    orders: new TagBook(),
    strict: new TagBook(),
    flakes: new TagBook(),
    moved: new TagBook(),
    sdk: new TagBook(),
  };
  readonly order: OrderBook = new OrderBook();
  /** What nobody may see, in words. */
  readonly faults: string[] = [];
  /** Ids that calls in flight had asked for when the last life ended. */
  askedInVain: Record<CountedTag, number> = { orders: 0, strict: 0 };
  /** Highest floor that an operator was told. */
  advancedTo = 0n;
  /** What an operator was told last of `moved`; undefined: the outcome of the last call is not known. */
  #state: TagState | undefined = TagState.ACTIVE;
  readonly #made = new Set<string>();
  readonly #hasFlakes: boolean;
  readonly #sdk: IdClient;
  readonly #sdkCalls: Promise<void>;
  #sdkAnswers = 0;
  #isClosed = false;

  /** `kinds`: snowflakes are left out where a store was just accepted, whose floors of them lie minutes ahead. */
  constructor(address: string, kinds: "all" | "no snowflakes" = "all") {
    this.#hasFlakes = kinds === "all";
    this.#sdk = createIdClient({ address, min: 10, max: 10, deadlineMs: 1_000 });
    this.#sdkCalls = this.#callSdk();
  }

  /** Calls a server until it is gone or all is done. Answers how many calls it answered. */
  async live(address: string, steps = STEPS): Promise<number> {
    this.askedInVain = { orders: 0, strict: 0 };
    using api = new Api(address);
    let answered = 0;
    const stream = async (name: string, run: (api: Api, step: number) => Promise<void>) => {
      for (let step = 0; step < steps; step++) {
        try {
          await run(api, step);
          answered++;
        } catch (thrown) {
          const error = IdmintError.from(thrown);
          if (!EXPECTED.has(error.reason))
            this.faults.push(`${name}: ${error.reason} ${error.message}`);
          if (error.reason === "SERVER_UNAVAILABLE") return;
        }
      }
    };
    await Promise.all([
      stream("orders", this.#orders),
      ...(this.#hasFlakes ? [stream("flakes", this.#flakes), stream("leases", this.#leases)] : []),
      stream("operator", this.#operate),
      ...Array.from({ length: SEQUENCE_CALLERS }, () => stream("strict", this.#strict)),
    ]);
    return answered;
  }

  /** Makes the tags that all lives use; those that are there already stay. */
  async makeTags(address: string): Promise<void> {
    using api = new Api(address);
    await api.createTag({ name: "orders", min: SEGMENT, max: SEGMENT });
    await api.createTag({ name: "moved", min: SEGMENT, max: SEGMENT });
    await api.createTag({ name: "sdk", min: SEGMENT, max: SEGMENT });
    await api.createSequence("strict");
    await api.createSnowflake("flakes");
  }

  /** Everybody gets something: the SDK too, whose server was gone. */
  async goOn(address: string): Promise<void> {
    const before = this.#sdkAnswers;
    if ((await this.live(address, 4)) === 0)
      this.faults.push("nobody was answered after the last restart");
    // Of each tag that it asks for. Where something is wrong anyway, it may wait for ever.
    const goesOn = (): boolean => this.#sdkAnswers >= before + 4 || this.faults.length > 0;
    await until("the SDK goes on", goesOn, { withinMs: DEADLINE_MS });
  }

  readonly #orders = async (api: Api, step: number): Promise<void> => {
    const { orders } = this.books;
    if (step % 3 < 2) {
      const request = { tag: "orders", count: 30, asList: true };
      const { ids } = await this.#counted("orders", 30, api.generateIds(request, DEADLINE_MS));
      for (const id of ids) orders.receive(id);
      return;
    }
    const allocate = api.ids.allocateSegment.bind(api.ids);
    const asked = api.send(
      allocate,
      { tag: "orders", count: 40, after: 0n, instance: "crash" },
      DEADLINE_MS,
    );
    const { segments, releaseToken } = await this.#counted("orders", 40, asked);
    const ids = segments.flatMap(({ base, count }) =>
      Array.from({ length: count }, (_, at) => base + BigInt(at)),
    );
    for (const id of ids) orders.receive(id);
    const unused = ids.slice(-10);
    for (const id of unused) orders.giveBack(id);
    const release = api.ids.releaseSegment.bind(api.ids);
    await api.send(release, { tag: "orders", releaseToken, unusedCount: 10 }, DEADLINE_MS);
  };

  readonly #strict = async (api: Api): Promise<void> => {
    const answered = this.order.ask();
    const id = await this.#counted("strict", 1, api.id("strict", DEADLINE_MS));
    answered(id);
    this.books.strict.receive(id);
  };

  readonly #flakes = async (api: Api): Promise<void> => {
    const request = { tag: "flakes", count: 5, asList: true };
    const { ids } = await api.generateIds(request, DEADLINE_MS);
    for (const id of ids) this.books.flakes.receive(id);
  };

  readonly #leases = async (api: Api, step: number): Promise<void> => {
    for (const at of [2 * step, 2 * step + 1]) {
      const name = `leased-${at % LEASED_TAGS}`;
      if (!this.#made.has(name)) await this.#make(api, name);
      await api.id(name, DEADLINE_MS);
    }
  };

  async #make(api: Api, name: string): Promise<void> {
    try {
      await api.createSnowflake(name);
    } catch (thrown) {
      // Made by a call whose answer nobody heard.
      if (IdmintError.from(thrown).reason !== "TAG_EXISTS") throw thrown;
    }
    this.#made.add(name);
  }

  /** Takes ids, raises the floor, pauses and resumes: what was answered has to be there in the next life. */
  readonly #operate = async (api: Api, step: number): Promise<void> => {
    const { moved } = this.books;
    const name = "moved";
    const { state, floor } = await api.getTag(name);
    if (this.#state !== undefined && state !== this.#state) {
      this.faults.push(`${name} is in state ${state}, and an operator was told ${this.#state}`);
    }
    if (floor < this.advancedTo) {
      this.faults.push(
        `${name} has the floor ${floor}, and an operator was told ${this.advancedTo}`,
      );
    }
    const request = { name, etag: "", validateOnly: false };
    if (state === TagState.PAUSED) {
      this.#state = undefined;
      await api.send(api.tags.resumeTag.bind(api.tags), request, DEADLINE_MS);
      this.#state = TagState.ACTIVE;
    } else if (step % 4 === 0) {
      this.#state = undefined;
      await api.send(api.tags.pauseTag.bind(api.tags), request, DEADLINE_MS);
      this.#state = TagState.PAUSED;
    } else if (step % 4 === 2) {
      const advance = { ...request, floor: floor + 7n, allowLargeRaise: false };
      await api.send(api.tags.advanceTag.bind(api.tags), advance, DEADLINE_MS);
      this.advancedTo = floor + 7n;
    } else {
      this.#state = state;
      const { ids } = await api.generateIds({ tag: name, count: 3, asList: true }, DEADLINE_MS);
      for (const id of ids) {
        if (id <= this.advancedTo)
          this.faults.push(`${id} came after an advance to ${this.advancedTo}`);
        moved.receive(id);
      }
    }
  };

  async #counted<T>(tag: CountedTag, count: number, call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (thrown) {
      // A refusal costs nothing; who hears nothing may have been given ids.
      if (IdmintError.from(thrown).reason === "SERVER_UNAVAILABLE") this.askedInVain[tag] += count;
      throw thrown;
    }
  }

  /** A program with the SDK, which outlives all servers and does not mind when they end. */
  async #callSdk(): Promise<void> {
    const names = this.#hasFlakes ? (["sdk", "flakes"] as const) : (["sdk"] as const);
    while (!this.#isClosed) {
      for (const name of names) {
        try {
          this.books[name].receive(await this.#sdk.tag(name).next());
          this.#sdkAnswers++;
        } catch (thrown) {
          const { reason } = IdmintError.from(thrown);
          if (!EXPECTED_BY_SDK.has(reason)) this.faults.push(`SDK: ${reason}`);
        }
      }
      await pause(SDK_PAUSE_MS);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#sdkCalls;
    await this.#sdk.close();
  }
}
