import { IdmintError } from "@idmint/core";
import type { RedisSequences, RedisSnowflakes, RedisWorkers } from "@idmint/core/server";
import type { ElectedRedis } from "../../../server/src/service/redis/redis-tags.ts";
import type { RedisCalls } from "../../src/index.ts";
import type { Network } from "../world/network.ts";
import type { World } from "../world/world.ts";
import type { RedisSite } from "./redis-site.ts";

/** How long who asks waits for a connection, and most that it pauses before the next try. */
const CONNECT_MS = 1_000;
const MOST_PAUSE_MS = 500;
/** A connection on which something waits and nothing comes for so long is given up. */
const SILENT_MS = 2_000;
/** How often a server asks to be the one that watches, and how long it believes that it is. */
const CAMPAIGN_MS = 1_000;
const LEADS_MS = 4_000;

export interface SimRedisPorts {
  readonly world: World;
  readonly site: RedisSite;
  readonly network: Network;
  readonly timeoutMs: number;
}

interface Waiting {
  readonly end: (settle: () => void) => void;
  readonly reject: (error: IdmintError) => void;
}

/** A connection: what is sent on it arrives in order, at the process that it was made to, or not at all. */
interface Line {
  readonly send: (arrive: () => void) => void;
  readonly back: (arrive: () => void) => void;
  readonly waiting: Set<Waiting>;
  /** Whether the process at the other end is gone. */
  isBroken: boolean;
  heardAt: number;
  readonly forget: () => void;
}

/**
 * A Redis as one server reaches it: the driver, with a connection that is made again whenever it breaks.
 *
 * INVARIANT: a script is sent at most once, and runs in the process to which its connection was made, or nowhere. So what was sent
 * before a restart does not meet the Redis that came back.
 */
export class SimRedis implements ElectedRedis {
  readonly name: string;
  readonly refusal = "";
  readonly sequences: RedisSequences;
  readonly snowflakes: RedisSnowflakes;
  readonly workers: RedisWorkers;
  readonly #ports: SimRedisPorts;
  #line: Line | undefined;
  #attempts = 0;
  #isClosed = false;
  #leadsUntil = -Infinity;
  #cancelTry: (() => void) | undefined;
  #cancelCampaign: (() => void) | undefined;
  #cancelWatch: (() => void) | undefined;

  constructor(ports: SimRedisPorts) {
    this.#ports = ports;
    this.name = ports.site.name;
    this.sequences = {
      issue: (request) => this.#ask((redis) => redis.sequences.issue(request)),
      seed: (request) => this.#ask((redis) => redis.sequences.seed(request)),
      raise: (request) => this.#ask((redis) => redis.sequences.raise(request)),
      list: (...of) => this.#ask((redis) => redis.sequences.list(...of)),
      unlist: (tag) => this.#ask((redis) => redis.sequences.unlist(tag)),
      read: (tags) => this.#ask((redis) => redis.sequences.read(tags)),
      writeRates: (rates) => this.#ask((redis) => redis.sequences.writeRates(rates)),
    };
    this.snowflakes = {
      issue: (request) => this.#ask((redis) => redis.snowflakes.issue(request)),
      seed: (request) => this.#ask((redis) => redis.snowflakes.seed(request)),
    };
    this.workers = {
      lease: (request) => this.#ask((redis) => redis.workers.lease(request)),
      renew: (request) => this.#ask((redis) => redis.workers.renew(request)),
      release: (request) => this.#ask((redis) => redis.workers.release(request)),
      list: (query) => this.#ask((redis) => redis.workers.list(query)),
      seed: (request) => this.#ask((redis) => redis.workers.seed(request)),
    };
    this.#connect();
    this.#campaign();
  }

  get reachable(): boolean {
    return this.#line !== undefined;
  }

  get isLeader(): boolean {
    return this.#ports.world.now() < this.#leadsUntil;
  }

  raiseLimit(request: Parameters<RedisCalls["raiseLimit"]>[0]): Promise<boolean> {
    return this.#ask((redis) => redis.raiseLimit(request));
  }

  retire(tag: string): Promise<void> {
    return this.#ask((redis) => redis.retire(tag));
  }

  forget(tag: string): Promise<void> {
    return this.#ask((redis) => redis.forget(tag));
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelCampaign?.();
    this.#cancelTry?.();
    const line = this.#line;
    if (line !== undefined) this.#broken(line, "it is closed");
    return Promise.resolve();
  }

  /** One try after the other, until there is a connection. */
  #connect(): void {
    const { world, site, network } = this.#ports;
    let isOver = false;
    const again = (afterMs: number): void => {
      if (isOver) return;
      isOver = true;
      this.#attempts++;
      this.#cancelTry?.();
      if (this.#isClosed) return;
      this.#cancelTry = world.after(afterMs, () => this.#connect());
    };
    const pauseMs = Math.min(MOST_PAUSE_MS, 25 * this.#attempts);
    this.#cancelTry = world.after(CONNECT_MS, () => again(pauseMs));
    const back = network.line(site.world, world.place);
    network.send(world, site.place, () => {
      if (site.isDown) {
        back(() => world.deliver(() => again(pauseMs)));
        return;
      }
      const line: Line = {
        send: network.line(world, site.place),
        back,
        waiting: new Set(),
        isBroken: false,
        heardAt: world.now(),
        forget: site.connected(() => {
          line.isBroken = true;
          network.carry(site.place, world.place, () =>
            world.deliver(() => this.#broken(line, "the connection broke")),
          );
        }),
      };
      back(() =>
        world.deliver(() => {
          if (isOver || this.#isClosed) return line.forget();
          isOver = true;
          this.#cancelTry?.();
          this.#attempts = 0;
          line.heardAt = world.now();
          this.#line = line;
        }),
      );
    });
  }

  /** All that waits on it fails, and may have been done. */
  #broken(line: Line, why: string): void {
    line.forget();
    for (const { end, reject } of line.waiting) end(() => reject(this.#unavailable(why)));
    if (this.#line !== line) return;
    this.#line = undefined;
    this.#cancelWatch?.();
    this.#cancelWatch = undefined;
    if (!this.#isClosed) this.#connect();
  }

  /** Sends something, once. */
  #ask<T>(work: (redis: RedisCalls) => Promise<T>): Promise<T> {
    const { world, timeoutMs } = this.#ports;
    const line = this.#line;
    if (line === undefined) return Promise.reject(this.#unavailable("it is not connected"));
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const cancel = world.after(timeoutMs, () =>
      waiting.end(() => reject(this.#unavailable(`no answer in ${timeoutMs} ms`))),
    );
    const waiting: Waiting = {
      end: (settle) => {
        if (!line.waiting.delete(waiting)) return;
        cancel();
        settle();
      },
      reject,
    };
    line.waiting.add(waiting);
    this.#watch(line);
    line.send(() => this.#arrive(line, work, { waiting, resolve }));
    return promise;
  }

  #arrive<T>(
    line: Line,
    work: (redis: RedisCalls) => Promise<T>,
    { waiting, resolve }: { readonly waiting: Waiting; readonly resolve: (answer: T) => void },
  ): void {
    const { world, site } = this.#ports;
    // Its process is gone, and with it all that it was sent.
    if (line.isBroken) return;
    const answer = (settle: () => void): void =>
      line.back(() =>
        world.deliver(() => {
          line.heardAt = world.now();
          waiting.end(settle);
        }),
      );
    site.whenItsTurn((fate) => {
      if (line.isBroken || fate === "lost") return;
      if (fate === "refused") {
        answer(() => waiting.reject(this.#unavailable("READONLY it takes no writes")));
        return;
      }
      const run = async (): Promise<void> => {
        try {
          const done = await work(site.calls(world.name));
          if (fate === "done") answer(() => resolve(done));
          else line.back(() => world.deliver(() => this.#broken(line, "the connection broke")));
        } catch (thrown) {
          answer(() => waiting.reject(IdmintError.from(thrown)));
        }
      };
      void run();
    });
  }

  /** With something that waits and nothing that comes, the connection is dead. */
  #watch(line: Line): void {
    const { world } = this.#ports;
    if (this.#cancelWatch !== undefined) return;
    const startedAt = world.now();
    this.#cancelWatch = world.after(SILENT_MS, () => {
      this.#cancelWatch = undefined;
      if (this.#line === line && line.heardAt < startedAt) this.#broken(line, "nothing comes");
    });
  }

  #campaign(): void {
    const { world, site } = this.#ports;
    const askedAt = world.now();
    const ask = async (): Promise<void> => {
      const leads = await this.#ask(() => Promise.resolve(site.campaign(world.name)));
      this.#leadsUntil = leads ? askedAt + LEADS_MS : -Infinity;
    };
    void ask().catch(() => undefined);
    this.#cancelCampaign = world.after(CAMPAIGN_MS, () => this.#campaign());
  }

  #unavailable(why: string): IdmintError {
    const text = `Redis "${this.name}": ${why}`;
    return new IdmintError("STORE_UNAVAILABLE", text, { retryAfterMs: 250 });
  }
}
