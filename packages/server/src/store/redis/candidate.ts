import { setTimeout as pause } from "node:timers/promises";
import { createElection, type Election, type RedisSource } from "@idmint/coordination";
import { knownStoreId, nameInRedis, type StoreId } from "./store-name.ts";

/** How long a leader that says nothing stays leader. */
const TTL_MS = 5_000;
const RETRY_MS = 1_000;

/** What one of the servers is elected for. */
type Office = "alarms" | "watch";

/** Stands in an election of one store's servers, in one Redis, for as long as it is open. */
export class Candidate {
  readonly #source: RedisSource;
  readonly #office: Office;
  readonly #storeId: StoreId;
  #election: Election | undefined;
  readonly #closing = new AbortController();
  #isLeader = false;

  /**
   * `source` may hold passwords; it is not shown. A second leader beside the first does no harm here, and of a Redis that
   * removes keys its connection tells.
   */
  constructor(source: RedisSource, office: Office, storeId: StoreId) {
    this.#source = source;
    this.#office = office;
    this.#storeId = storeId;
    void this.#stand();
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#election?.close();
  }

  async #heldElection(signal: AbortSignal): Promise<Election> {
    const storeId = await knownStoreId(this.#storeId, signal);
    const name = nameInRedis(this.#office, storeId);
    this.#election ??= createElection({ node: this.#source, name, ttlMs: TTL_MS, mayEvict: true });
    return this.#election;
  }

  async #stand(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const election = await this.#heldElection(signal);
        await using leadership = await election.campaign({ signal });
        this.#isLeader = true;
        await aborted(AbortSignal.any([signal, leadership.signal]));
      } catch {
        // Whatever it is, it stands again; what the leader does is also done without one, only later or less well.
      }
      this.#isLeader = false;
      await pause(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  else signal.addEventListener("abort", () => resolve(), { once: true });
  return promise;
}
