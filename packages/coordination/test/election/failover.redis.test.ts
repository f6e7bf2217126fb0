// Leaders while Redis is killed, emptied, set back, paused and replaced by its replica: never two at a time.
import { RedisServer } from "@idmint/testkit/redis";
import { expect, test } from "vitest";
import { createElection, type Leadership } from "../../src/index.ts";
import { sleep, until } from "../support.ts";
import { Switch } from "./switch.ts";

const isLong = process.env["IDMINT_LONG"] === "1";
const failOvers = isLong ? 200 : 20;
const ttlMs = 300;

/** Who acted when. One process, one turn at a time: so the order is exact. */
class Record {
  acts = 0;
  readonly #leaderOf = new Map<bigint, number>();
  #highest = 0n;

  act(candidate: number, { term }: Leadership): void {
    const leader = this.#leaderOf.get(term) ?? candidate;
    if (leader !== candidate) throw new Error(`${candidate} and ${leader} acted in term ${term}`);
    if (term < this.#highest) {
      throw new Error(`${candidate} acted in term ${term} after term ${this.#highest} began`);
    }
    this.#leaderOf.set(term, candidate);
    this.#highest = term;
    this.acts++;
  }

  get terms(): number {
    return this.#leaderOf.size;
  }
}

/** False once its time is over, which may be at any moment after an earlier look. */
function leads(leadership: Leadership): boolean {
  try {
    leadership.assert();
    return true;
  } catch (error) {
    if ((error as { reason?: string }).reason === "NOT_LEADER") return false;
    throw error;
  }
}

async function lead(
  candidate: number,
  url: string,
  record: Record,
  signal: AbortSignal,
): Promise<void> {
  await using election = createElection({ node: url, name: "failover", ttlMs, nodeTimeoutMs: 150 });
  while (!signal.aborted) {
    let leadership: Leadership;
    try {
      leadership = await election.campaign({ signal });
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    while (!signal.aborted && leads(leadership)) {
      // In the turn of the look, as `assert` wants it.
      record.act(candidate, leadership);
      await sleep(2);
    }
    await leadership.resign();
  }
}

/** A master and a replica, and the faults that exchange or hurt them. */
class Pair {
  master: RedisServer;
  replica: RedisServer;
  readonly #address: Switch;

  constructor(master: RedisServer, replica: RedisServer, address: Switch) {
    this.master = master;
    this.replica = replica;
    this.#address = address;
  }

  readonly faults: readonly (() => Promise<void>)[] = [
    // Killed, and back without anything.
    async () => {
      await this.master.kill();
      this.master.wipe();
      await this.master.start();
      await this.replica.follow(this.master);
    },
    // Emptied by somebody.
    async () => {
      await this.master.command("FLUSHALL");
    },
    // Killed, and back as it was some time ago.
    async () => {
      // A save for the replica may be on its way still.
      while (!(await this.#saves())) await sleep(10);
      const old = this.master.copyData();
      await sleep(2 * ttlMs);
      await this.master.kill();
      this.master.restore(old);
      await this.master.start();
      await this.replica.follow(this.master);
    },
    // Killed, and replaced by its replica, which had not heard of the last leader.
    async () => {
      this.replica.pause();
      await sleep(2 * ttlMs);
      await this.master.kill();
      this.replica.resume();
      await this.#exchange();
      await this.replica.start();
      await this.replica.follow(this.master);
    },
    // Paused, replaced, and there again when the replica in its place is gone: with all that it believed.
    async () => {
      await this.replica.follow(this.master);
      this.master.pause();
      await this.#exchange();
      await sleep(2.5 * ttlMs);
      this.replica.resume();
      await sleep(Math.random() * ttlMs);
      await this.master.kill();
      await this.#exchange();
      await this.replica.start();
      await this.replica.follow(this.master);
    },
    // Paused for a while.
    async () => {
      this.master.pause();
      await sleep(1.5 * ttlMs);
      this.master.resume();
    },
  ];

  async #saves(): Promise<boolean> {
    const { master } = this;
    return master.command("SAVE").then(
      () => true,
      () => false,
    );
  }

  async #exchange(): Promise<void> {
    [this.master, this.replica] = [this.replica, this.master];
    await this.master.promote();
    this.#address.turn(this.master.port);
  }
}

test(
  `never two leaders over ${failOvers} fail-overs`,
  async () => {
    await using one = await RedisServer.start();
    await using two = await RedisServer.start();
    await two.follow(one);
    await using address = await Switch.to(one.port);
    const pair = new Pair(one, two, address);
    const record = new Record();
    const stop = new AbortController();
    const failed: unknown[] = [];
    const candidates = [1, 2, 3].map((id) =>
      lead(id, address.url, record, stop.signal).catch((error: unknown) => failed.push(error)),
    );
    try {
      for (let i = 0; i < failOvers; i++) {
        const { acts } = record;
        await until("somebody acts", () => record.acts > acts + 5 || failed.length > 0, 30_000);
        await pair.faults[i % pair.faults.length]!();
        expect(failed).toEqual([]);
      }
      const { acts } = record;
      await until(
        "somebody acts at the end",
        () => record.acts > acts || failed.length > 0,
        30_000,
      );
    } finally {
      stop.abort();
      await Promise.all(candidates);
    }
    expect(failed).toEqual([]);
    expect(record.terms).toBeGreaterThan(failOvers / 3);
    console.log(`${record.terms} terms, ${record.acts} acts`);
  },
  isLong ? 900_000 : 120_000,
);
