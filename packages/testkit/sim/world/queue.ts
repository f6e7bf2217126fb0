/** Something that happens later, once; whoever makes many keeps one, and adds it again. */
export interface Event {
  /** The queue's own, while it waits. */
  at: number;
  /** Events of one time run in the order in which they were made. */
  number: number;
  /** Undefined: it does not happen any more. */
  run: (() => void) | undefined;
}

/**
 * Events that one turn of Node's loop runs: a turn asks the system for input, and there is none. Of the last turn before somebody
 * looks around all are made, and few are needed.
 */
const TURN_EVENTS = 64;

/**
 * The events of a history, by their time: the only thing that makes anything happen in it.
 *
 * INVARIANT: nothing but the queue decides what runs next. An event runs, and then all promises that it settled, to the last one:
 * all ports of the nodes lead here, so nobody waits for a real timer, a socket or a thread, and what is left when the microtasks
 * are done can only go on by a later event. Each event is an immediate of its own, since Node runs all microtasks between two of
 * those. They run in the order in which they were made, however long that takes, so the machine's speed and its clock change
 * nothing.
 */
export class EventQueue {
  readonly #heap: Event[] = [];
  #now = 0;
  #made = 0;
  #ran = 0;

  /** Milliseconds since the beginning of the history. */
  get now(): number {
    return this.#now;
  }

  /** Events that ran. */
  get ran(): number {
    return this.#ran;
  }

  /** Runs something later; the answer takes that back. */
  after(delayMs: number, run: () => void): () => void {
    const event: Event = { at: 0, number: 0, run };
    this.add(event, delayMs);
    return () => {
      event.run = undefined;
    };
  }

  /** The same, of an event that does not wait already. */
  add(event: Event, delayMs: number): void {
    event.at = this.#now + Math.max(0, delayMs);
    event.number = this.#made++;
    this.#push(event);
  }

  /** Runs what comes due up to then, each event at its own time. */
  async runUntil(endMs: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      let left = 0;
      let isOver = false;
      const turn = (): void => {
        left = TURN_EVENTS;
        for (let at = 0; at < TURN_EVENTS; at++) setImmediate(step);
      };
      const step = (): void => {
        if (isOver) return;
        const run = this.#next(endMs);
        isOver = run === undefined;
        if (run === undefined) return resolve();
        try {
          run();
        } catch (thrown) {
          isOver = true;
          return reject(new Error("an event of a history failed", { cause: thrown }));
        }
        if (--left === 0) turn();
      };
      turn();
    });
    this.#now = endMs;
  }

  /** What comes due next, if it does up to then. Time goes on to it. */
  #next(endMs: number): (() => void) | undefined {
    for (let next = this.#heap[0]; next !== undefined && next.at <= endMs; next = this.#heap[0]) {
      this.#pop();
      if (next.run === undefined) continue;
      this.#now = next.at;
      this.#ran++;
      return next.run;
    }
    return undefined;
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(event, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      let child = heap[left];
      let childAt = left;
      const right = heap[left + 1];
      if (child !== undefined && right !== undefined && isBefore(right, child)) {
        child = right;
        childAt = left + 1;
      }
      if (child === undefined || !isBefore(child, last)) break;
      heap[at] = child;
      at = childAt;
    }
    heap[at] = last;
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.at === other.at ? one.number < other.number : one.at < other.at;
}

const { setImmediate } = globalThis;
