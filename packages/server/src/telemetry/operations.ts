import { IdmintError } from "@idmint/core";
import { type StoreInterceptor, type Store, wrapStore } from "@idmint/core/server";
import { Histogram } from "../service/histogram.ts";
import { type Operation, presentTrace } from "../service/trace.ts";

/** Seconds, as OpenTelemetry recommends for databases. */
const BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** What databases are called in metrics and traces, by the name of the backend. */
const SYSTEMS: Readonly<Record<string, string>> = { postgres: "postgresql", spread: "postgresql" };

export interface TimedOperation {
  readonly system: string;
  readonly operation: string;
  /** Why it failed; empty where it did not. */
  readonly error: string;
  readonly times: Histogram;
}

/**
 * Times what is asked of stores, and makes it spans of the traced call that it is asked for. What is asked, and why it
 * fails, are closed lists.
 */
export class Operations {
  readonly #timed = new Map<string, TimedOperation>();

  /** The same store, whose calls are observed. `place`: its URL, as it is shown to people. */
  observed(store: Store, place: string): Store {
    const system = SYSTEMS[store.backend] ?? store.backend;
    const where = whereOf(place);
    const intercept: StoreInterceptor = (name, args, inner) =>
      this.#around(system, name, () => inner[name](...args), where);
    return wrapStore(store, intercept);
  }

  /** Stands around what is asked of Redis. */
  readonly aroundRedis = <T>(operation: string, work: () => Promise<T>): Promise<T> =>
    this.#around("redis", operation, work);

  all(): Iterable<TimedOperation> {
    return this.#timed.values();
  }

  async #around<T>(
    system: string,
    operation: string,
    work: () => Promise<T>,
    where: Operation = {},
  ): Promise<T> {
    const span = presentTrace()?.operation({
      "db.system.name": system,
      "db.operation.name": operation,
      ...where,
    });
    const startedAt = performance.now();
    let error = "";
    try {
      return await work();
    } catch (thrown) {
      error = IdmintError.from(thrown).reason;
      throw thrown;
    } finally {
      this.#record(system, operation, error, (performance.now() - startedAt) / 1_000);
      span?.end(error);
    }
  }

  #record(system: string, operation: string, error: string, seconds: number): void {
    const key = `${system} ${operation} ${error}`;
    let timed = this.#timed.get(key);
    if (timed === undefined) {
      timed = { system, operation, error, times: new Histogram(BOUNDS) };
      this.#timed.set(key, timed);
    }
    timed.times.record(seconds);
  }
}

/** Where a store is, for spans, if its URL names one host. */
function whereOf(place: string): Operation {
  const { hostname = "", port = "", pathname = "" } = URL.parse(place) ?? {};
  if (hostname === "") return {};
  const database = pathname.slice(1);
  return {
    "server.address": hostname,
    ...(port === "" ? {} : { "server.port": Number(port) }),
    ...(database === "" ? {} : { "db.namespace": database }),
  };
}
