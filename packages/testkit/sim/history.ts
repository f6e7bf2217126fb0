import { type Visitors, visitorsOf } from "./access/visitors.ts";
import { PlainCaller } from "./callers.ts";
import { Clerk } from "./clerk.ts";
import { FAULT_KINDS } from "./fault-kinds.ts";
import { befall } from "./faults.ts";
import { Fleet, type FleetOptions, REDIS_TIMEOUT_MS } from "./fleet.ts";
import { simKind, slotsOf } from "./kinds.ts";
import { Load } from "./load.ts";
import { Operator } from "./operator.ts";
import { BEGIN_MS, type Plan, type TagPlan } from "./plan.ts";
import { Dice } from "./world/random.ts";
import type { Violation } from "./check/checker.ts";
import { AFTER_MS } from "./check/meetings.ts";
import type { World } from "./world/world.ts";

/** How often somebody looks whether it is time to go on. */
const LOOK_MS = 1_000;
/**
 * By when all is well again, after the last fault and after the store was last refused: servers are started and proved, cool-downs
 * are over. Where an earlier accept could not withdraw its ask, that stands for a minute, and nobody else accepts the store.
 */
const WELL_AFTER_MS = 30_000;
const MOST_WELL_AFTER_MS = 85_000;
/** How long programs go on to ask then. Later on little happens. */
const CALM_LOAD_MS = 10_000;
/** A call of that time has to be answered then. */
const PROBE_MS = 5_000;
/** By when a fleet that was told to stop has stopped. */
const CLOSE_MS = 20_000;
const CALLERS = 2;
const ALL_CLOCKS: readonly string[] = FAULT_KINDS.filter((kind) => kind.endsWith("clock set"));
/** Of a store that nobody accepted anew. */
const FIRST_HISTORY = "history-1";

/** What became of a history. */
export interface Outcome {
  readonly hash: string;
  readonly violations: readonly Violation[];
  readonly last: readonly string[];
  readonly calls: number;
  readonly answered: number;
  readonly ids: number;
  readonly faults: number;
  readonly servers: number;
  readonly simulatedMs: number;
  readonly events: number;
  /** Repeats that docs/guarantees.md excludes. */
  readonly excluded: number;
  /** Answers that were held against a change of an operator. */
  readonly judged: number;
  readonly refusals: ReadonlyMap<string, number>;
  /** How often calls for a kind of tag met a fault. */
  readonly met: ReadonlyMap<string, number>;
  /** How often each method of the API was answered. */
  readonly methods: ReadonlyMap<string, number>;
}

/** Runs what a plan says, and all that follows from it. */
export async function runHistory(plan: Plan, options: FleetOptions = {}): Promise<Outcome> {
  const restore = options.planted?.patch?.();
  try {
    return await new History(plan, options).run();
  } finally {
    restore?.();
  }
}

class History {
  readonly #plan: Plan;
  readonly #fleet: Fleet;
  readonly #load: Load;
  readonly #operator: Operator;
  readonly #clerk: Clerk;
  readonly #callers: readonly World[];
  #visitors: Visitors | undefined;
  readonly #heals = new Set<() => void>();

  constructor(plan: Plan, options: FleetOptions) {
    this.#plan = plan;
    this.#fleet = new Fleet(plan, options, (sdk) => this.#load.ofSdk(sdk));
    this.#load = new Load(this.#fleet);
    this.#operator = new Operator(this.#fleet, this.#load);
    this.#clerk = new Clerk(this.#fleet);
    this.#callers = Array.from({ length: CALLERS }, (_, at) => this.#fleet.world(`c${at + 1}`));
  }

  async run(): Promise<Outcome> {
    const { checker, queue, trace } = this.#fleet;
    const plan = this.#plan;
    for (const tag of plan.tags) {
      const { name, order, ceiling, kind } = tag;
      const { isGranted, isLeased } = simKind(tag);
      const isPlain = kind === "segment";
      const slots = slotsOf(tag);
      checker.promise(name, { order, ceiling, isGranted, isLeased, isPlain, slots });
    }
    for (let at = 0; at < plan.servers; at++) this.#fleet.startServer(at);
    void this.#operator.begin();
    await queue.runUntil(BEGIN_MS);
    this.#begin();
    await queue.runUntil(BEGIN_MS + plan.stormMs);
    await this.#calm();
    if (checker.violations.length === 0) await this.#close();
    this.#fleet.forget();
    return {
      hash: trace.hash,
      violations: checker.violations,
      last: trace.last,
      calls: checker.calls,
      answered: checker.answered,
      ids: checker.ids,
      faults: plan.faults.length + plan.actions.length,
      servers: plan.servers,
      simulatedMs: queue.now,
      events: queue.ran,
      excluded: checker.excluded,
      judged: checker.judged,
      refusals: this.#load.refusals,
      met: this.#fleet.meetings.counts,
      methods: this.#fleet.methods,
    };
  }

  #begin(): void {
    const { queue, trace } = this.#fleet;
    const plan = this.#plan;
    for (let at = 0; at < plan.sdks; at++) this.#fleet.startSdk(at);
    for (const world of this.#callers) {
      const dice = new Dice(`${plan.seed}/${world.name}/calls`);
      const caller = new PlainCaller(this.#fleet, this.#load, world, dice);
      this.#load.ofCaller(world, dice, () => caller.ask());
    }
    this.#visitors = visitorsOf(this.#fleet, this.#load);
    for (const fault of plan.faults) {
      queue.after(fault.atMs, () => {
        trace.note("fault", `${fault.kind} ${fault.target} for ${fault.ms} ms, ${fault.size}`);
        queue.after(fault.ms + AFTER_MS, this.#fleet.meetings.begin(fault.kind));
        const heal = befall(this.#fleet, fault);
        if (heal === undefined) return;
        const once = (): void => {
          if (!this.#heals.delete(once)) return;
          trace.note("fault", `${fault.kind} ${fault.target} is over`);
          heal();
        };
        this.#heals.add(once);
        queue.after(fault.ms, once);
      });
    }
    for (const action of plan.actions) queue.after(action.atMs, () => this.#operator.do(action));
  }

  /** Nothing goes wrong any more: a while later every server and every program has ids of every tag. */
  async #calm(): Promise<void> {
    const { queue, checker, trace } = this.#fleet;
    const plan = this.#plan;
    for (const heal of this.#heals) heal();
    for (const { world } of [...this.#fleet.servers, ...this.#fleet.sdks]) world.setRight();
    void this.#operator.settle();
    queue.after(CALM_LOAD_MS, () => {
      this.#load.stop();
      this.#visitors?.stop();
      this.#clerk.stop();
    });
    await this.#becomeWell();
    trace.note("history", "is to be well");
    const { servers, sdks } = this.#fleet;
    const serving = servers.filter(({ isServing }) => isServing);
    if (serving.length < plan.servers) {
      checker.violate(
        `${serving.length} of ${plan.servers} servers serve, a while after the last fault`,
      );
    }
    this.#visitors?.probe();
    const [prober] = this.#callers;
    const dice = new Dice(`${plan.seed}/probes`);
    const results: [string, boolean | undefined][] = [];
    const probe = (what: string, asked: Promise<boolean>): void => {
      const result: [string, boolean | undefined] = [what, undefined];
      results.push(result);
      void asked.then((isAnswered) => (result[1] = isAnswered));
    };
    for (const tag of plan.tags) {
      if (this.#isUsedUp(tag)) continue;
      for (const { address, world } of servers) {
        if (prober === undefined) continue;
        const ask = (ms: number): Promise<boolean> =>
          this.#load.askServer(prober, address, tag, ms);
        probe(`${world.name} for ${tag.name}`, this.#askAgainIfLate(prober, ask));
      }
      for (const sdk of sdks) {
        const ask = (ms: number): Promise<boolean> => this.#load.askSdk(sdk, tag, dice, ms);
        probe(`${sdk.world.name} for ${tag.name}`, askTwice(sdk.world, ask));
      }
    }
    await this.#until(2 * PROBE_MS, () => results.every(([, isAnswered]) => isAnswered === true));
    // A server that may hold fewer tags than are asked for refuses some while it is busy with all of those.
    const holdsAll = plan.limitTags >= plan.tags.length;
    for (const [what, isAnswered] of results) {
      const isExcluded = !holdsAll || checker.isAhead(what);
      if (isAnswered !== true && !isExcluded)
        checker.violate(`all is well, and no answer: ${what}`);
    }
    for (const [{ name }, calls] of this.#load.open) {
      if (calls > 0 && this.#isAlive(name))
        checker.violate(`${calls} calls of ${name} never ended`);
    }
  }

  /**
   * Now and then a message takes longer than a server waits for Redis or the store, also when all is well. What it asked for may be
   * done, and to ask again costs ids, so it refuses, and its caller decides. One that refuses sooner has no reason to: what it has to
   * read first, it reads.
   */
  async #askAgainIfLate(
    asker: World,
    ask: (deadlineMs: number) => Promise<boolean>,
  ): Promise<boolean> {
    const { queue } = this.#fleet;
    const askedAt = queue.now;
    if (await ask(PROBE_MS / 2)) return true;
    if (queue.now - askedAt < REDIS_TIMEOUT_MS) return false;
    await asker.pause(LOOK_MS);
    return ask(PROBE_MS);
  }

  async #becomeWell(): Promise<void> {
    const { queue, site } = this.#fleet;
    let wellAt = queue.now + WELL_AFTER_MS;
    await this.#until(MOST_WELL_AFTER_MS, () => {
      if (this.#operator.isRefused || site.isAsked) wellAt = queue.now + WELL_AFTER_MS;
      return queue.now >= wellAt;
    });
  }

  /** Goes on until something is so, as somebody sees who looks again and again, or for this time. */
  async #until(mostMs: number, isSo: () => boolean): Promise<void> {
    const { queue } = this.#fleet;
    const endAt = queue.now + mostMs;
    while (!isSo() && queue.now < endAt) await queue.runUntil(queue.now + LOOK_MS);
  }

  /** All that run are told to stop: nothing waits afterwards. */
  async #close(): Promise<void> {
    const { queue, checker, servers, sdks } = this.#fleet;
    this.#operator.stop();
    await queue.runUntil(queue.now + LOOK_MS);
    const closing = this.#fleet.close();
    let isClosed = false;
    void closing.then(() => (isClosed = true));
    await this.#until(CLOSE_MS, () => isClosed);
    if (!isClosed) checker.violate(`the fleet did not stop within ${CLOSE_MS} ms`);
    for (const { world } of [...servers, ...sdks]) {
      if (world.timers > 0) checker.violate(`${world.timers} timers of ${world.name} are left`);
    }
    for (const { inFlight, world } of servers) {
      if (inFlight > 0) checker.violate(`${inFlight} calls wait at ${world.name}`);
    }
  }

  #isAlive(name: string): boolean {
    const all = [...this.#fleet.sdks.map(({ world }) => world), ...this.#callers];
    return all.some((world) => world.name === name && !world.isDead);
  }

  #isUsedUp(tag: TagPlan): boolean {
    const { isTimed, isLeased, isGranted } = simKind(tag);
    const sets = isLeased ? ALL_CLOCKS : ["Redis' clock set"];
    // Whoever made ids of an hour ahead waits for that hour. After an accept the floor lies minutes ahead: a holder that leases its
    // worker id anew a few times, since answers get lost, has reserved all that it may until the clock is there.
    const isAhead =
      this.#plan.faults.some(({ kind }) => sets.includes(kind)) ||
      this.#fleet.site.database.incarnation !== FIRST_HISTORY;
    const { name } = tag;
    if (isTimed) return isAhead || this.#operator.isLost(name);
    if (!isGranted) return this.#operator.isLost(name);
    const row = this.#fleet.site.database.rows.get(name);
    if (row === undefined || row.floor >= row.ceiling - 1_000n) return true;
    return this.#operator.isLost(name);
  }
}

/** A program that was not asked for long may tell why it failed the last time: it is asked again. */
async function askTwice(
  asker: World,
  ask: (deadlineMs: number) => Promise<boolean>,
): Promise<boolean> {
  if (await ask(PROBE_MS / 2)) return true;
  await asker.pause(LOOK_MS);
  return ask(PROBE_MS);
}
