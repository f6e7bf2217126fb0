import { startupSnapshot } from "node:v8";
import * as threads from "node:worker_threads";
import { bounded, countOf, createMadeTimes, IdmintError, type Unused } from "@idmint/core";
import type { IdClient, IdTag } from "./api.ts";
import { GrpcTransport, type Transport } from "./servers/channel.ts";
import { assertTagName } from "./calls.ts";
import { tellEvent, tellStock } from "./channels.ts";
import { Endpoints } from "./servers/endpoints.ts";
import type { IdClientEvent } from "./events.ts";
import {
  type IdClientOptions,
  ignoreRejection,
  type ResolvedOptions,
  resolveOptions,
} from "./options.ts";
import { countClient } from "./process/live-clients.ts";
import { outside } from "./process/outside.ts";
import { nodeRuntime, type Runtime } from "./runtime.ts";
import { BufferedTag } from "./tag.ts";
import { TagTable } from "./tag-table.ts";
import type { Receipt, TagContext } from "./tag-context.ts";

/** How often buffers look at their rate and at the age of what they hold. */
const SAMPLE_PERIOD_MS = 1_000;
/** How long `close` may take to give ids back. */
const CLOSE_DEADLINE_MS = 2_000;
/** Part of it for the answers of loads in flight, which nobody will use. */
const LATE_LOADS_MS = 500;
/** Releases in flight at once. */
const PARALLEL_RELEASES = 32;

/** Tells the clients of this process from each other. */
let nextNumber = 1;

/** The outside world of a client. */
export interface ClientPorts {
  readonly runtime: Runtime;
  readonly transport: (options: ResolvedOptions) => Transport;
}

const NODE_PORTS = (): ClientPorts => ({
  runtime: nodeRuntime(() => startupSnapshot.isBuildingSnapshot()),
  transport: ({ tls, token }) => new GrpcTransport(tls, token),
});

/**
 * Makes a client. It connects and fetches nothing before the first use of a tag. An idle client does not keep the process
 * alive; a waiting call does. Bad options throw one INVALID_ARGUMENT that names all of them. At ten open clients of one address the
 * process is warned, with the code IDMINT_MANY_CLIENTS: a client that is dropped without `close` keeps its worker ids.
 */
export function createIdClient(options: IdClientOptions): IdClient {
  return new BufferedIdClient(options, NODE_PORTS());
}

interface Leftover {
  readonly tag: string;
  readonly receipt: Receipt;
  readonly unusedCount: number;
}

/**
 * NO TWO PROCESSES SHARE A CACHED SEGMENT. What a client holds lives in private fields of one heap: it cannot be cloned
 * or posted (marked as uncloneable), a forked or spawned child starts from its own modules, and the one way to carry a
 * heap into several processes, a V8 startup snapshot, is refused when the client is made. The process number is
 * compared on every load besides.
 */
export class BufferedIdClient implements IdClient {
  readonly #options: ResolvedOptions;
  readonly #runtime: Runtime;
  readonly #transport: Transport;
  readonly #context: TagContext<BufferedTag>;
  readonly #tags: TagTable<BufferedTag>;
  readonly #processId: number;
  readonly #number = nextNumber++;
  readonly #uncount: () => void;
  #stopTicker: (() => void) | undefined;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  constructor(options: IdClientOptions, ports: ClientPorts) {
    this.#options = resolveOptions(options);
    this.#runtime = ports.runtime;
    if (this.#runtime.isBuildingSnapshot()) {
      const text =
        "a client cannot be part of a startup snapshot: every process would issue its ids";
      throw new IdmintError("CLIENT_CLOSED", text);
    }
    this.#processId = this.#runtime.processId();
    this.#transport = ports.transport(this.#options);
    this.#tags = new TagTable(this.#options.maxTags);
    this.#context = this.#makeContext();
    this.#runtime.onLeap(() => {
      for (const tag of this.#tags.values()) tag.expireAll();
    });
    threads.markAsUncloneable(this);
    this.#uncount = countClient(this.#options.addresses);
  }

  tag(name: string): IdTag {
    const known = this.#tags.get(name);
    if (known !== undefined) return known;
    this.#assertUsable();
    assertTagName(name);
    const tag = new BufferedTag(name, this.#context);
    this.#tags.hold(tag);
    this.#stopTicker ??= this.#runtime.every(SAMPLE_PERIOD_MS, () => {
      for (const each of this.#tags.values()) each.sample();
      this.#tags.sweep();
      tellStock(this.#number, () => [...this.#tags.values()].map((each) => each.stock));
    });
    return tag;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #makeContext(): TagContext<BufferedTag> {
    const { addresses, zone, rpcDeadlineMs, deadlineMs, maxAgeMs, worker } = this.#options;
    const { min, max, holdForMs, prefetchShare, maxWaiters } = this.#options;
    const { clock, timers, quietTimers, wallClock, random, afterTurn, textMakers } = this.#runtime;
    const emit = (event: IdClientEvent): void => this.#emit(event);
    return {
      clock,
      endpoints: new Endpoints(
        { addresses, zone, rpcDeadlineMs },
        {
          transport: this.#transport,
          clock,
          timers: quietTimers,
          random,
          emit,
          assertUsable: () => this.#assertUsable(),
        },
      ),
      afterTurn,
      emit,
      hold: (tag) => this.#tags.hold(tag),
      deadlineMs,
      maxAgeMs,
      buffer: { min, max, holdForMs, prefetchShare, maxWaiters },
      ports: { clock, timers, quietTimers, random, onEvent: emit },
      quietTimers,
      textMakers,
      wallClock,
      made: createMadeTimes(),
      worker,
    };
  }

  #assertUsable(): void {
    if (this.#isClosed) throw clientClosed();
    if (this.#runtime.processId() !== this.#processId) {
      throw new IdmintError(
        "CLIENT_CLOSED",
        "this client belongs to another process; make one here",
      );
    }
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    this.#uncount();
    this.#stopTicker?.();
    tellStock(this.#number, () => []);
    const endAtMs = this.#runtime.clock.now() + CLOSE_DEADLINE_MS;
    const leftovers: Leftover[] = [];
    const late: Promise<void>[] = [];
    for (const tag of this.#tags.all()) {
      const addLeftover = ({ receipt, segments }: Unused<Receipt>): void => {
        const unusedCount = countOf(segments);
        if (receipt.releaseToken !== "") leftovers.push({ tag: tag.name, receipt, unusedCount });
      };
      for (const unused of tag.drain(clientClosed())) addLeftover(unused);
      late.push(tag.lateLoad().then((load) => load && addLeftover(load)));
    }
    await bounded(Promise.all(late), LATE_LOADS_MS, this.#runtime.timers, () => undefined);
    await this.#releaseAll(leftovers, endAtMs);
    this.#transport.close();
    this.#runtime.close();
  }

  /** Each leftover at most once: an unknown outcome leaves a gap, a second try could give back issued ids. */
  async #releaseAll(leftovers: Leftover[], endAtMs: number): Promise<void> {
    const releaseSome = async (): Promise<void> => {
      for (let next = leftovers.pop(); next !== undefined; next = leftovers.pop()) {
        const leftMs = endAtMs - this.#runtime.clock.now();
        if (leftMs <= 0) return;
        await this.#release(next, leftMs);
      }
    };
    const workers = Math.min(PARALLEL_RELEASES, leftovers.length);
    await Promise.all(Array.from({ length: workers }, releaseSome));
  }

  async #release({ tag, receipt, unusedCount }: Leftover, timeoutMs: number): Promise<void> {
    const { endpoint, releaseToken } = receipt;
    const request = { tag, releaseToken, unusedCount };
    try {
      const { reclaimedCount } = await this.#transport.release(endpoint, request, timeoutMs);
      this.#emit({ type: "released", tag, unusedCount, reclaimedCount });
    } catch (thrown) {
      this.#emit({ type: "release-failed", tag, unusedCount, error: IdmintError.from(thrown) });
    }
  }

  #emit(event: IdClientEvent): void {
    outside(() => {
      tellEvent(event);
      try {
        ignoreRejection(this.#options.onEvent?.(event));
      } catch {
        // A listener that throws must not cost its caller an id.
      }
    });
  }
}

function clientClosed(): IdmintError {
  return new IdmintError("CLIENT_CLOSED", "the client was closed");
}
