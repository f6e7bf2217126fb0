import { randomUUID } from "node:crypto";
import {
  type ClaimsAnswer,
  type EarlierRow,
  type Store,
  type StoreChanges,
  type Tag,
  VersionGuard,
} from "@idmint/core/server";
import { granted } from "@idmint/testkit/store-suite";
import { onTestFinished } from "vitest";
import { openStore, type StoreConfig } from "../../src/store/open-store.ts";

/** What a server does with its store once a second, here as often as it is told. */
export class Poller {
  readonly store: Store;
  /** How often a poll said that a promoted standby was accepted by itself. */
  accepts = 0;
  readonly #id: string;
  /** What the last poll left in the server's row, and what an earlier life of it knows of that. */
  #own: readonly EarlierRow[] = [];
  readonly #earlier: readonly EarlierRow[];
  readonly #cursor = { after: 0 };
  readonly #guard = new VersionGuard();
  #count: bigint;
  #last = { tag: "", last: 0n, version: 0n };
  #obeyed = { incarnation: "", obeyed: 0n };
  #since = 2n ** 63n - 1n;

  private constructor(store: Store, earlier: Poller | undefined) {
    this.store = store;
    this.#id = earlier === undefined ? randomUUID() : earlier.#id;
    this.#earlier = earlier === undefined ? [] : earlier.#own;
    this.#count = earlier === undefined ? 0n : earlier.#count;
  }

  /** Closed at the end of the test. `earlier`: it is that server, which was started again and has its file. */
  static async open(config: StoreConfig, earlier?: Poller): Promise<Poller> {
    const poller = new Poller(await openStore(config), earlier);
    onTestFinished(() => poller.store.close());
    return poller;
  }

  async poll(): Promise<StoreChanges> {
    this.#count++;
    const found = await this.store.changes({
      since: this.#since,
      watched: [...this.#guard.watch(1_000, this.#cursor)],
      limit: 100,
      renewal: {
        node: {
          id: this.#id,
          instance: this.#id,
          address: "",
          version: "1",
          zone: "",
          startedAtMs: 0,
          maxOfflineMs: 60_000,
        },
        count: this.#count,
        ...this.#obeyed,
        traffic: 0n,
        isProved: true,
        earlier: this.#own.length === 0 ? this.#earlier : [],
      },
    });
    this.#own = found.parts.flatMap(({ name: part, own }) =>
      own === undefined ? [] : [{ ...own, part, agoMs: 0 }],
    );
    this.#since = found.revision;
    if (found.isAccepted === true) this.accepts++;
    // Versions of before an accept are compared no more.
    if (found.incarnation !== this.#obeyed.incarnation) this.#guard.startHistory();
    this.#obeyed = { incarnation: found.incarnation, obeyed: found.revision };
    return found;
  }

  /** Takes ids and remembers them, as a server does. */
  async grant(tag = "t", more: Parameters<typeof granted>[2] = {}): Promise<bigint> {
    const grant = await granted(this.store, tag, more);
    const { base, count, epoch, period } = grant;
    const last = base + BigInt(count) - 1n;
    this.#guard.admitGrant(tag, 0n, grant);
    this.#guard.admitIds(tag, { epoch, first: base, last, period: period?.start ?? "" });
    this.#last = { tag, last, version: grant.version };
    return base;
  }

  /** A lookup brought a record. */
  saw(tag: Tag | undefined): void {
    if (tag !== undefined) this.#guard.observe(tag.name, tag);
  }

  /** Gives the last ids of the last grant back. */
  async giveBack(unused: bigint): Promise<number> {
    const { tag, last: to, version } = this.#last;
    const from = to - unused + 1n;
    this.#guard.giveBack(tag, { from, to });
    const [givenBack = 0] = await this.store.giveBack([{ tag, from, to, version }]);
    return givenBack;
  }

  /** Says all that it was granted. */
  async speak(nonce: string): Promise<ClaimsAnswer> {
    const id = this.#id;
    return this.store.claim({
      nonce,
      claimant: { id, instance: id, address: "", sinceMs: 0, isWhole: true },
      claims: [...this.#guard.claims()],
      page: 0,
      isLast: true,
    });
  }

  /** Polls until the store is no more fenced; answers how long that took, in milliseconds. */
  async accepted(withinMs: number): Promise<number | undefined> {
    const startedAt = performance.now();
    while (performance.now() - startedAt < withinMs) {
      const found = await this.poll().catch(() => undefined);
      if (found?.fenced === "") return performance.now() - startedAt;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return undefined;
  }
}
