import { IdmintError } from "../errors.ts";
import type { Clock, Timers } from "../ports.ts";
import type { Segment } from "../segment/segment.ts";
import {
  type ClockReading,
  createGeneratorState,
  extend,
  type GeneratorOptions,
  type GeneratorState,
  giveUp,
  leftOfTick,
  look,
  type MadeSnowflakes,
  make,
  nextParts,
  pass,
  type Reservation,
  takeUp,
  timeNow,
  type Verdict,
} from "./generator-state.ts";
import { bigintOf, bitsOf, composeHalves } from "./layout.ts";

/** What a generator needs of the outside world. */
export interface GeneratorPorts {
  readonly clock: Clock;
  /** Milliseconds since 1970. May go back and jump. */
  readonly wallClock: () => number;
  readonly timers: Timers;
}

/** Most ids of one block, for which the clocks are read once. */
const MAX_BLOCK = 64;
/** Only a caller that uses up a block within this time gets a larger one next. */
const FAST_BLOCK_MS = 0.5;
/** A block ends with the turn of the event loop that comes after this time, so that ids do not carry an old time. */
const BLOCK_LIFE_MS = 1;
const MAX_NUMBER_BITS = 53;

/**
 * Makes the ids of one worker id. The rules and the invariants are in `generator-state.ts`; this shell has the clocks
 * and the blocks. A block is ids that the state passed over together, so that the clocks are read once for all of them.
 * It has one id for callers that come now and then, and up to 64 for callers at full speed.
 */
export class SnowflakeGenerator {
  readonly #state: GeneratorState;
  readonly #ports: GeneratorPorts;
  readonly #maxBlock: number;
  readonly #isSafe: boolean;
  /** The block: sequences of one tick from `#sequence` to its end, and the id of that tick with sequence 0. */
  #sequence = 0;
  #end = 0;
  #base = 0n;
  #baseNumber = 0;
  #baseTick = -1;
  #size = 1;
  #openedAt = -Infinity;
  #cancelTimer: (() => void) | undefined;
  #verdict: Verdict = { type: "unreserved", aheadMs: 0 };

  constructor(options: GeneratorOptions, made: MadeSnowflakes, ports: GeneratorPorts) {
    const { layout } = options;
    this.#state = createGeneratorState(options, made);
    this.#ports = ports;
    this.#maxBlock = Math.max(1, Math.min(MAX_BLOCK, 2 ** (layout.sequenceBits - 3)));
    this.#isSafe = bitsOf(layout) <= MAX_NUMBER_BITS;
  }

  /** The next id; undefined when none may be made now. `verdict` then says why. */
  tryNext(): bigint | undefined {
    if (this.#sequence === this.#end && !this.#open()) return undefined;
    return this.#base + BigInt(this.#sequence++);
  }

  /**
   * The next id as a number, or −1. Throws UNSAFE_INTEGER, and makes nothing, when the layout has more than 53 bits.
   */
  tryNextNumber(): number {
    if (this.#sequence === this.#end && !this.#openNumbers()) return -1;
    return this.#baseNumber + this.#sequence++;
  }

  /** Up to `count` ids as segments, ascending; fewer, or none, when no more may be made now. */
  make(count: number): readonly Segment[] {
    this.#endBlock();
    this.#verdict = look(this.#state, this.#read());
    return make(this.#state, count);
  }

  /** What the last look at the clocks found. */
  get verdict(): Verdict {
    return this.#verdict;
  }

  /** The time ids are made of now, milliseconds since 1970. */
  timeNow(): number {
    return timeNow(this.#state, this.#read());
  }

  /** Begins with a reservation of a new lease or extension. `maxLeadMs` as in generator-state.ts. */
  takeUp(reservation: Reservation, maxLeadMs: number): void {
    this.#endBlock();
    this.#baseTick = -1;
    takeUp(this.#state, reservation, this.#read(), maxLeadMs);
  }

  /** The reservation was raised. False: no id is made of it; the lease has to be given up. */
  extend(reservedUntilMs: number): boolean {
    return extend(this.#state, reservedUntilMs);
  }

  /** Makes nothing more until the next `takeUp`. */
  giveUp(): void {
    this.#endBlock();
    giveUp(this.#state);
    this.#verdict = { type: "unreserved", aheadMs: 0 };
  }

  #openNumbers(): boolean {
    if (this.#isSafe) return this.#open();
    throw new IdmintError(
      "UNSAFE_INTEGER",
      "the tag's layout has more than 53 bits, and no number holds its ids exactly; use next() or nextString()",
    );
  }

  #open(): boolean {
    const state = this.#state;
    const reading = this.#read();
    this.#verdict = look(state, reading);
    const left = leftOfTick(state);
    if (left === 0) return false;
    const isFast = reading.monotonicMs - this.#openedAt < FAST_BLOCK_MS;
    this.#openedAt = reading.monotonicMs;
    this.#size = isFast ? Math.min(this.#size * 2, this.#maxBlock) : 1;
    if (state.tick !== this.#baseTick) {
      this.#baseTick = state.tick;
      const halves = composeHalves(state.layout, { ...nextParts(state), sequence: 0 });
      this.#base = bigintOf(halves);
      this.#baseNumber = halves.hi * 2 ** 32 + halves.lo;
    }
    const count = Math.min(this.#size, left);
    this.#sequence = state.sequence;
    this.#end = state.sequence + count;
    pass(state, count);
    if (count > 1) {
      this.#cancelTimer ??= this.#ports.timers.after(BLOCK_LIFE_MS, () => this.#endBlock());
    }
    return true;
  }

  /** Gives up what is left of the block, since its time has passed. */
  #endBlock(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#sequence = 0;
    this.#end = 0;
  }

  #read(): ClockReading {
    return { wallMs: this.#ports.wallClock(), monotonicMs: this.#ports.clock.now() };
  }
}
