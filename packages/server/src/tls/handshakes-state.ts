import { type Place, Places } from "../doors/places-state.ts";

export interface HandshakeLimits {
  /** Handshakes that run at once. */
  readonly running: number;
  /** Connections that wait for theirs. */
  readonly waiting: number;
  /** How many begin in a second, and at once after a quiet time. */
  readonly perSecond: number;
  readonly burst: number;
}

/** A connection, from its arrival to the end of its handshake. */
export interface Handshake<Its> {
  readonly its: Its;
  /** Where it waits, and then where it runs. */
  place: Place<Handshake<Its>>;
  isRunning: boolean;
}

/** Who has to go for a newcomer, or the newcomer itself. */
export type Arrived<Its> =
  | { readonly handshake: Handshake<Its>; readonly loser: Its | undefined }
  | "no place is free";

/** What may begin now; otherwise in how many milliseconds something may, or, undefined, when one that runs has ended. */
export type Next<Its> =
  | { readonly handshake: Handshake<Its>; readonly loser: Its | undefined }
  | number
  | undefined;

/**
 * Whose TLS handshake runs, and who waits for one. Pure; time is in milliseconds, by a clock that is never set back.
 *
 * A handshake costs as much as dozens of calls, and its memory is kept as long as its peer likes to take for it.
 *
 * INVARIANT: in any time no more begin than `burst` and `perSecond` of that time, and no more than `running` run. Addresses that
 * wait begin in turns, so who comes behind thousands of another address waits for one of them. Where all places are taken, who
 * runs and who waits gives way as connections do (see Places).
 */
export class Handshakes<Its> {
  readonly #limits: HandshakeLimits;
  readonly #running: Places<Handshake<Its>>;
  readonly #waiting: Places<Handshake<Its>>;
  /** Of each address that waits, in the order of their turns. */
  readonly #turns = new Map<string, Set<Handshake<Its>>>();
  #may: number;
  #at = 0;

  constructor(limits: HandshakeLimits) {
    this.#limits = limits;
    this.#running = new Places(limits.running);
    this.#waiting = new Places(limits.waiting);
    this.#may = limits.burst;
  }

  /** A connection that is to have a handshake. */
  arrive(address: string, its: Its): Arrived<Its> {
    const handshake = { its, isRunning: false } as Handshake<Its>;
    const taken = this.#waiting.take(address, handshake);
    if (taken === "no place is free") return taken;
    const { place, loser } = taken;
    if (loser !== undefined) this.#leaveTurn(loser);
    handshake.place = place;
    const own = this.#turns.get(address) ?? new Set();
    this.#turns.set(address, own.add(handshake));
    return { handshake, loser: loser?.its };
  }

  /** It is over, or its connection is gone; once more does nothing. */
  end(handshake: Handshake<Its>): void {
    if (handshake.isRunning) this.#running.free(handshake.place);
    else this.#leaveTurn(handshake);
  }

  /** Begins the next one, if any may. */
  next(now: number): Next<Its> {
    const { burst, perSecond } = this.#limits;
    this.#may = Math.min(burst, this.#may + ((now - this.#at) * perSecond) / 1_000);
    this.#at = now;
    if (this.#turns.size === 0) return undefined;
    if (this.#may < 1) return Math.ceil(((1 - this.#may) * 1_000) / perSecond);
    for (const [address, own] of this.#turns) {
      const [handshake] = own;
      if (handshake === undefined) continue;
      const taken = this.#running.take(address, handshake);
      // Another address may have to give way to none, and still have its turn.
      if (taken === "no place is free") continue;
      this.#leaveTurn(handshake);
      // Its address is behind the others now.
      if (own.size > 0 && this.#turns.delete(address)) this.#turns.set(address, own);
      handshake.place = taken.place;
      handshake.isRunning = true;
      this.#may -= 1;
      return { handshake, loser: taken.loser?.its };
    }
    return undefined;
  }

  #leaveTurn(handshake: Handshake<Its>): void {
    const { address } = handshake.place;
    this.#waiting.free(handshake.place);
    const own = this.#turns.get(address);
    own?.delete(handshake);
    if (own?.size === 0) this.#turns.delete(address);
  }
}
