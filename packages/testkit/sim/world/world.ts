import { elapsedClock, type Clock, type Timers } from "@idmint/core";
import { Dice } from "./random.ts";
import type { Event, EventQueue } from "./queue.ts";

/** 2027-01-01, a Friday, 23:59:30 UTC: periods end during a history. */
const WALL_START_MS = Date.UTC(2027, 0, 1, 23, 59, 30);
/** Node's timers are late by up to so much. */
const LATE_MS = 0.5;
/** By when a timer has run that was to run after a millisecond, as that is by which an SDK ends its bursts. */
const WOKEN_MS = 3;
/** `os.uptime` tells hundredths of a second. */
const UPTIME_STEP_MS = 10;

/** How the clocks of a node differ from the time of the history. */
export interface ClockSettings {
  /** Of the wall clock at the beginning. */
  readonly offsetMs: number;
  /** How much faster both clocks run, as a share: 0.0001 is 100 ppm. */
  readonly drift: number;
}

interface Held {
  readonly run: () => void;
}

/**
 * One process on a machine of its own: its clocks, timers and chance, and the door through which everything reaches it.
 *
 * INVARIANT: a node that was killed does nothing any more. What comes to it, its timers and the answers to what it asked are
 * dropped, and what it sends is not sent (`acts`). Code of it that still runs, in the turn in which it was cut, changes nothing but
 * its own memory. A restart is a new World.
 */
export class World implements Clock, Timers {
  /** With the number of its life. */
  readonly name: string;
  /** Where it is on the network, in all its lives. */
  readonly place: string;
  readonly dice: Dice;
  readonly clock: Clock;
  readonly #queue: EventQueue;
  readonly #rate: number;
  readonly #held: Held[] = [];
  readonly #bornAt: number;
  readonly #firstOffsetMs: number;
  #wallOffsetMs: number;
  /** Time in which the machine was suspended; the monotonic clock stood still. */
  #suspendedMs = 0;
  #isDead = false;
  #stoppedAt: number | undefined;
  #wokeAt = -Infinity;
  #isSuspended = false;
  #actionsLeft = Infinity;
  #onLeap: (() => void) | undefined;
  #timers = 0;
  #stops = 0;
  #steps = 0;

  constructor(
    name: string,
    seed: string,
    queue: EventQueue,
    { offsetMs, drift }: ClockSettings = { offsetMs: 0, drift: 0 },
  ) {
    this.name = name;
    this.place = name.split("#")[0] ?? name;
    this.dice = new Dice(`${seed}/${name}`);
    this.#queue = queue;
    this.#rate = 1 + drift;
    this.#bornAt = queue.now;
    this.#wallOffsetMs = offsetMs;
    this.#firstOffsetMs = offsetMs;
    this.clock = elapsedClock({
      monotonicMs: () => this.#monotonic(),
      wallMs: () => this.wall(),
      uptimeMs: () => Math.floor(this.#uptime() / UPTIME_STEP_MS) * UPTIME_STEP_MS,
      onLeap: () => this.#onLeap?.(),
    });
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Whether its event loop stands still. */
  get isStopped(): boolean {
    return this.#stoppedAt !== undefined;
  }

  /** How often its wall clock was set so far, and the machine suspended, which moves one clock alone. */
  get steps(): number {
    return this.#steps;
  }

  /** How often it was stopped so far. */
  get stops(): number {
    return this.#stops;
  }

  /** Whether it has gone on so lately that not all of its timers have run. */
  get isWoken(): boolean {
    return this.#queue.now - this.#wokeAt < WOKEN_MS;
  }

  /** Timers that wait. */
  get timers(): number {
    return this.#timers;
  }

  onLeap(run: () => void): void {
    this.#onLeap = run;
  }

  now(): number {
    return this.clock.now();
  }

  /** Milliseconds since 1970, as its wall clock says. */
  wall(): number {
    return WALL_START_MS + this.#queue.now * this.#rate + this.#wallOffsetMs;
  }

  /** The moment of the history at which its wall clock shows this time, if nobody sets it. */
  momentOf(wallMs: number): number {
    return this.#queue.now + (wallMs - this.wall()) / this.#rate;
  }

  after(delayMs: number, run: () => void): () => void {
    // As Node: at least a millisecond.
    const wantedMs = Math.max(1, delayMs);
    // On the monotonic clock.
    const dueAt = this.#monotonic() + wantedMs;
    const due = (): void => {
      if (timer.run === undefined) return;
      const leftMs = dueAt - this.#monotonic();
      // The clock of timers stood still with the machine.
      if (leftMs > 1e-6) return this.#queue.add(timer, leftMs / this.#rate);
      end();
      run();
    };
    const end = (): void => {
      if (timer.run === undefined) return;
      timer.run = undefined;
      this.#timers--;
    };
    const timer: Event = { at: 0, number: 0, run: () => this.deliver(due) };
    this.#timers++;
    this.#queue.add(timer, wantedMs / this.#rate + this.dice.next() * LATE_MS);
    return end;
  }

  /** Resolves so much later, or never: a killed process waits for nothing. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(ms, resolve);
    });
  }

  /** Runs a function after the present turn of its event loop. */
  afterTurn(run: () => void): void {
    this.#queue.after(0, () => this.deliver(run));
  }

  /** Something reaches it: at once, when it goes on, or never. */
  deliver(run: () => void): void {
    if (this.#isDead) return;
    if (this.isStopped) this.#held.push({ run });
    else run();
  }

  /** Whether what it does now has an effect on the world. To be asked once for each message that it sends. */
  acts(): boolean {
    if (this.#isDead || this.isStopped) return false;
    if (--this.#actionsLeft < 0) this.kill();
    return !this.#isDead;
  }

  kill(): void {
    this.#isDead = true;
    this.#held.length = 0;
  }

  /** Kills it in the middle of what it does: after so many further messages. */
  killAfter(actions: number): void {
    this.#actionsLeft = actions;
  }

  /** Its event loop stops. `isSuspended`: the whole machine does, and its monotonic clock with it. */
  stop(isSuspended: boolean): void {
    if (this.isStopped) return;
    this.#stops++;
    if (isSuspended) this.#steps++;
    this.#stoppedAt = this.#queue.now;
    this.#isSuspended = isSuspended;
  }

  goOn(): void {
    if (this.#stoppedAt === undefined) return;
    if (this.#isSuspended) this.#suspendedMs += (this.#queue.now - this.#stoppedAt) * this.#rate;
    this.#stoppedAt = undefined;
    this.#wokeAt = this.#queue.now;
    for (const { run } of this.#held.splice(0)) this.#queue.after(0, () => this.deliver(run));
  }

  /** Somebody sets its wall clock. */
  stepWall(byMs: number): void {
    this.#steps++;
    this.#wallOffsetMs += byMs;
  }

  /** Its wall clock is what it was at the beginning. */
  setRight(): void {
    if (this.#wallOffsetMs !== this.#firstOffsetMs)
      this.stepWall(this.#firstOffsetMs - this.#wallOffsetMs);
  }

  #uptime(): number {
    return (this.#queue.now - this.#bornAt) * this.#rate + 1_000;
  }

  #monotonic(): number {
    const at =
      this.#isSuspended && this.#stoppedAt !== undefined ? this.#stoppedAt : this.#queue.now;
    return (at - this.#bornAt) * this.#rate + 1_000 - this.#suspendedMs;
  }
}
