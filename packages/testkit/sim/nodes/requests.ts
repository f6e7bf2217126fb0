import { IdmintError } from "@idmint/core";
import type { Network } from "../world/network.ts";
import type { EventQueue } from "../world/queue.ts";
import type { World } from "../world/world.ts";

export interface RequestPorts {
  readonly world: World;
  readonly network: Network;
  readonly queue: EventQueue;
  readonly timeoutMs: number;
}

/** How a request fares that arrives. An error: it is refused with it, before anything is done. */
export interface RequestFate {
  readonly delayMs: number;
  readonly is: "done" | "lost" | "unheard" | IdmintError;
}

interface Request<T> {
  /** What becomes of it; asked when it arrives. */
  readonly fate: () => RequestFate;
  readonly work: () => T | Promise<T>;
  readonly resolve: (done: T) => void;
  readonly reject: (error: IdmintError) => void;
}

/**
 * What one node asks of a database, over connections of which each carries one request.
 *
 * INVARIANT: a request is done at the database or it is not, whatever its sender learns of it. It may be done long after the sender
 * gave it up or died, and what was done may never be heard of.
 */
export class Requests {
  readonly #ports: RequestPorts;
  readonly #place: string;
  readonly #unavailable: (why: string) => IdmintError;
  /** What waits for an answer. */
  readonly #waiting = new Set<() => void>();

  constructor(ports: RequestPorts, place: string, unavailable: (why: string) => IdmintError) {
    this.#ports = ports;
    this.#place = place;
    this.#unavailable = unavailable;
  }

  send<T>(request: Request<T>): void {
    const { world, network, timeoutMs } = this.#ports;
    const giveUp = (why: string): void => end(() => request.reject(this.#unavailable(why)));
    const closed = (): void => giveUp("it is closed");
    const cancel = world.after(timeoutMs, () => giveUp(`no answer in ${timeoutMs} ms`));
    const end = (settle: () => void): void => {
      this.#waiting.delete(closed);
      cancel();
      settle();
    };
    this.#waiting.add(closed);
    network.send(world, this.#place, () =>
      this.#arrive(request, (settle) =>
        network.carry(this.#place, world.place, () => world.deliver(() => end(settle))),
      ),
    );
  }

  /** Ends all that wait. */
  close(): void {
    for (const closed of this.#waiting) closed();
  }

  #arrive<T>(
    { fate, work, resolve, reject }: Request<T>,
    answer: (settle: () => void) => void,
  ): void {
    const { is, delayMs } = fate();
    if (is === "lost") return;
    if (is instanceof IdmintError) {
      answer(() => reject(is));
      return;
    }
    const run = async (): Promise<void> => {
      try {
        const done = await work();
        if (is === "done") answer(() => resolve(done));
        else answer(() => reject(this.#unavailable("the connection broke")));
      } catch (thrown) {
        answer(() => reject(IdmintError.from(thrown)));
      }
    };
    if (delayMs === 0) void run();
    else this.#ports.queue.after(delayMs, () => void run());
  }
}
