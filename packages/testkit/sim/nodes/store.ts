import { IdmintError } from "@idmint/core";
import {
  type CallAnswers,
  type CallArgs,
  checkedCall,
  type Store,
  type StoreCall,
  storeCalls,
  storeRefusesNow,
} from "@idmint/core/server";
import { type KnownRow, lossOf } from "../../../server/src/store/pins/own-row-state.ts";
import { type RequestFate, type RequestPorts, Requests } from "./requests.ts";
import { isRefused, type StoreFate, type StoreSite } from "./store-site.ts";

const PLACE = "store";

export interface SimStorePorts extends RequestPorts {
  readonly site: StoreSite;
}

/** The store as one node reaches it: its driver, with a time-out of its own. */
class Driver {
  readonly backend = "memory";
  readonly schemaVersion = 1;
  readonly maxBatch = 100;
  readonly #ports: SimStorePorts;
  readonly #requests: Requests;
  #isClosed = false;
  #id: string | undefined;
  /** What this node's row was, as it was told last; a lower one shows that the store went back. */
  #row: KnownRow | undefined;

  constructor(ports: SimStorePorts) {
    this.#ports = ports;
    this.#requests = new Requests(ports, PLACE, unavailable);
    const calls = storeCalls((name, args) => this.#ask(name, args));
    Object.assign(
      this,
      storeCalls((name, args) => checkedCall(name, args, calls)),
    );
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#requests.close();
    return Promise.resolve();
  }

  #ask<Name extends StoreCall>(name: Name, args: CallArgs[Name]): Promise<CallAnswers[Name]> {
    const { site, queue } = this.#ports;
    if (this.#isClosed) return Promise.reject(unavailable("it is closed"));
    const { promise, resolve, reject } = Promise.withResolvers<CallAnswers[Name]>();
    const looked = this.#lookOf(name, args);
    this.#requests.send({
      fate: () => {
        const { is, delayMs } = site.fate(name);
        return { delayMs, is: fateOf(is) };
      },
      work: () => ({ answer: this.#run(name, args), atMs: queue.now }),
      resolve: ({ answer, atMs }) => {
        const told = this.#told(name, answer);
        looked(atMs);
        resolve(told);
      },
      reject: (error) => {
        looked(undefined);
        reject(error);
      },
    });
    return promise;
  }

  /** Tells what becomes of a server's look at the tokens that there are: when the store did it, or that it failed. */
  #lookOf<Name extends StoreCall>(
    name: Name,
    args: CallArgs[Name],
  ): (doneAtMs: number | undefined) => void {
    // Without a version it is a list for an operator.
    if (name !== "readTokens" || args[0] === undefined) return () => undefined;
    const { world, site, queue } = this.#ports;
    const askedAt = queue.now;
    return (doneAtMs) => {
      if (doneAtMs === undefined) site.tokens.lookFailed(world);
      else site.tokens.looked(world, doneAtMs, queue.now - askedAt);
    };
  }

  #run<Name extends StoreCall>(name: Name, args: CallArgs[Name]): CallAnswers[Name] {
    const { site, world } = this.#ports;
    if (name === "changes") this.#compare(args[0] as CallArgs["changes"][0]);
    return site.run(world.name, name, args);
  }

  /** As all backends do with a poll: what it shows to be lost is marked in the store. */
  #compare({ renewal, watched }: CallArgs["changes"][0]): void {
    const { site, world } = this.#ports;
    const primary = site.reachedBy(world.name);
    const { database, forgotten } = primary;
    this.#id = renewal?.node.id;
    if (renewal === undefined || isRefused(primary)) return;
    const { id } = renewal.node;
    const loss =
      this.#row === undefined
        ? ""
        : lossOf(this.#row, {
            history: database.incarnation,
            renewals: database.nodes.get(id)?.renewals,
            forgotten: forgotten.get(id),
            storeMs: database.now(),
            atMs: world.now(),
          });
    if (loss !== "") site.mark(world.name, loss);
    // What was seen before an accept shows nothing of what was accepted.
    if (renewal.incarnation !== database.incarnation || isRefused(primary)) return;
    const lost = watched.find(
      ({ tag, version }) => (database.rows.get(tag)?.version ?? -1n) < version,
    );
    if (lost !== undefined) site.mark(world.name, `tag ${lost.tag} was at version ${lost.version}`);
  }

  #told<Name extends StoreCall>(name: Name, answer: CallAnswers[Name]): CallAnswers[Name] {
    const { site, queue, world: own } = this.#ports;
    if (name === "exchangeMarks") site.marksHeard.heard(own.name, queue.now);
    if (name !== "changes") return answer;
    const [part] = (answer as CallAnswers["changes"]).parts;
    if (part?.own !== undefined) {
      const { renewals, storeMs } = part.own;
      const { world } = this.#ports;
      const id = this.#id ?? "";
      this.#row = { id, renewals, history: part.incarnation, storeMs, atMs: world.now() };
    }
    return answer;
  }
}

function unavailable(why: string): IdmintError {
  return new IdmintError("STORE_UNAVAILABLE", `the store: ${why}`, { retryAfterMs: 250 });
}

function fateOf(is: StoreFate): RequestFate["is"] {
  if (is === "down") return unavailable("connection refused");
  if (is === "full") return storeRefusesNow("its disk is full", undefined);
  if (is === "refused") return unavailable("the connection broke before anything was done");
  return is;
}

/** The Store port of a node. */
export function simStore(ports: SimStorePorts): Store {
  return new Driver(ports) as unknown as Store;
}
