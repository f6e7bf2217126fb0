import { MemoryRedis, type RedisCalls, type RedisSnapshot } from "../../src/index.ts";
import type { Checker } from "../check/checker.ts";
import type { MarksHeard } from "../check/redis-log.ts";
import type { EventQueue } from "../world/queue.ts";
import { type Counted, countedIn, lossesOf } from "./redis-losses.ts";
import { Dice } from "../world/random.ts";
import type { Trace } from "../world/trace.ts";
import { World } from "../world/world.ts";

/** The id of the store of a history, as its servers know it. */
const STORE_ID = "store";

/** How often a state is kept that Redis may come back with, and how many. */
const SNAPSHOT_MS = 400;
const MOST_SNAPSHOTS = 40;
/** How long who watches a Redis does so without saying it again. */
const LEADER_MS = 5_000;

/** What is wrong with a Redis for a while. */
export interface RedisTrouble {
  /** It refuses connections, and those that it had are broken. */
  readonly isDown?: boolean;
  /** It takes requests and does nothing. */
  readonly hangs?: boolean;
  /** Mean of the time that each request waits before it is done. */
  readonly slowMs?: number;
  /** Share of requests that are done and whose connection breaks then. */
  readonly lostAnswers?: number;
  /** It answers that it takes no writes: it is full, cannot save, or is a replica. */
  readonly isReadOnly?: boolean;
}

export interface RedisSitePorts {
  readonly queue: EventQueue;
  readonly trace: Trace;
  readonly checker: Checker;
  readonly site: { readonly marksHeard: MarksHeard };
}

type Fate = "done" | "lost" | "refused" | "unheard";

/** What Redis had at one moment, and how far it had counted until then. */
interface Kept {
  readonly atMs: number;
  readonly snapshot: RedisSnapshot;
  readonly counted: Counted;
}

/** A Redis of a history, where it stands: what it has, its clock, its process, and what is wrong with it. */
export class RedisSite {
  readonly name: string;
  readonly place: string;
  readonly world: World;
  readonly memory: MemoryRedis;
  readonly trace: Trace;
  readonly #checker: Checker;
  readonly #marksHeard: MarksHeard;
  readonly #queue: EventQueue;
  readonly #dice: Dice;
  readonly #troubles = new Set<RedisTrouble>();
  readonly #snapshots: Kept[] = [];
  /** Connections to the present process. */
  readonly #connections = new Set<() => void>();
  readonly #calls = new Map<string, RedisCalls>();
  #leader: { readonly who: string; readonly untilMs: number } | undefined;
  /** When the last request is done: it does one after the other. */
  #busyUntil = 0;
  #counted: Counted = new Map();

  constructor(seed: string, name: string, { queue, trace, checker, site }: RedisSitePorts) {
    this.name = name;
    this.place = `redis-${name}`;
    this.world = new World(this.place, seed, queue);
    this.#dice = new Dice(`${seed}/${this.place} troubles`);
    this.trace = trace;
    this.#checker = checker;
    this.#marksHeard = site.marksHeard;
    this.#queue = queue;
    const wallClock = (): number => this.world.wall();
    this.memory = new MemoryRedis({ name, wallClock, newToken: () => this.#token() });
    this.#keepSnapshots();
  }

  /** What a server asks of it, as soon as that arrived. */
  calls(who: string): RedisCalls {
    let calls = this.#calls.get(who);
    if (calls === undefined) this.#calls.set(who, (calls = this.#noted(who)));
    return calls;
  }

  disturb(trouble: RedisTrouble): () => void {
    this.#troubles.add(trouble);
    if (trouble.isDown === true) this.#breakAll();
    return () => void this.#troubles.delete(trouble);
  }

  get isDown(): boolean {
    return [...this.#troubles].some(({ isDown }) => isDown === true);
  }

  /** A connection to the present process is made; `broken` is called once, when that ends. */
  connected(broken: () => void): () => void {
    this.#connections.add(broken);
    return () => void this.#connections.delete(broken);
  }

  /** Does a request that arrived on a connection, after those before it. */
  whenItsTurn(run: (fate: Fate) => void): void {
    const { delayMs, is } = this.#fate();
    const at = Math.max(this.#busyUntil, this.#queue.now + delayMs);
    this.#busyUntil = at;
    if (at <= this.#queue.now) run(is);
    else this.#queue.after(at - this.#queue.now, () => run(is));
  }

  #fate(): { readonly delayMs: number; readonly is: Fate } {
    const dice = this.#dice;
    let delayMs = 0;
    let is: Fate = "done";
    for (const { hangs, slowMs, lostAnswers = 0, isReadOnly } of this.#troubles) {
      if (slowMs !== undefined) delayMs += dice.about(slowMs);
      if (hangs === true) is = "lost";
      else if (isReadOnly === true) is = "refused";
      else if (dice.chance(lostAnswers)) is = "unheard";
    }
    return { delayMs, is };
  }

  /** Whether this server is the one that watches, as the key that they all try to set says. */
  campaign(who: string): boolean {
    const { now } = this.#queue;
    const leader = this.#leader;
    if (leader !== undefined && leader.untilMs > now && leader.who !== who) return false;
    this.#leader = { who, untilMs: now + LEADER_MS };
    return true;
  }

  /** FLUSHALL. */
  empty(): void {
    this.#note("is emptied");
    this.#look();
    this.memory.hashes.flush();
    this.#leader = undefined;
  }

  /** Each key is gone with this chance, as when its memory is full. */
  evict(share: number): void {
    this.#look();
    for (const tag of this.memory.hashes.tags) {
      if (!this.#dice.chance(share)) continue;
      this.#note(`has lost ${tag}`);
      this.memory.hashes.remove(tag);
    }
    this.#leader = undefined;
  }

  /**
   * A new process, with what there was so many milliseconds ago; undefined: nothing. `isPromoted`: a replica that took over.
   */
  restart(agoMs: number | undefined, isPromoted: boolean): void {
    const { hashes } = this.memory;
    const kept = agoMs === undefined ? undefined : this.#keptBefore(agoMs);
    if (kept === undefined) hashes.flush();
    else hashes.restore(kept.snapshot);
    hashes.begin(isPromoted);
    this.#leader = undefined;
    this.#note(
      `${isPromoted ? "is a replica" : "starts"} with ${kept?.atMs.toFixed(0) ?? "nothing"}`,
    );
    this.#breakAll();
  }

  /** The same process has what it had so many milliseconds ago, as if somebody had restored it there. */
  setBack(agoMs: number): void {
    const kept = this.#keptBefore(agoMs);
    if (kept === undefined) return;
    const { hashes } = this.memory;
    this.#look();
    const { now } = this.#queue;
    const told = this.#keptBefore(now - this.#marksHeard.toldUntil(now))?.counted;
    const restored = kept.snapshot;
    this.#note(`is set back to ${kept.atMs.toFixed(0)}`);
    const losses = lossesOf({ now: this.#counted, restored, told, process: hashes });
    this.#checker.redisIsSetBack(losses);
    hashes.restore(restored);
  }

  #keptBefore(agoMs: number): Kept | undefined {
    const before = this.#queue.now - agoMs;
    return this.#snapshots.findLast(({ atMs }) => atMs <= before);
  }

  #breakAll(): void {
    const all = [...this.#connections];
    this.#connections.clear();
    for (const broken of all) broken();
  }

  #keepSnapshots(): void {
    const snapshot = this.#look();
    this.#snapshots.push({ atMs: this.#queue.now, snapshot, counted: this.#counted });
    if (this.#snapshots.length > MOST_SNAPSHOTS) this.#snapshots.shift();
    this.#queue.after(SNAPSHOT_MS, () => this.#keepSnapshots());
  }

  /** Notes how far it has counted, also before some of that is gone. */
  #look(): RedisSnapshot {
    const snapshot = this.memory.hashes.snapshot();
    this.#counted = countedIn(snapshot, this.#counted);
    return snapshot;
  }

  /** The same, and what changes something is noted. */
  #noted(who: string): RedisCalls {
    const all = this.memory.of(STORE_ID);
    const { sequences, snowflakes, workers } = all;
    const note = (what: string): void => this.#note(`${what} for ${who}`);
    return {
      ...all,
      sequences: {
        ...sequences,
        issue: async (request) => {
          const answer = await sequences.issue(request);
          const { tag, generation } = request;
          if (answer.status !== "issued") note(`${tag} g${generation}: ${answer.status}`);
          else if (request.count > 0)
            note(`${tag} g${generation}: ${answer.before} … ${answer.last}`);
          return answer;
        },
        seed: async (request) => {
          const answer = await sequences.seed(request);
          const { tag, generation, cur, max } = request;
          note(`begins ${tag} g${generation} at ${cur}, up to ${max}: ${answer.status}`);
          return answer;
        },
      },
      snowflakes: {
        ...snowflakes,
        issue: async (request) => {
          const answer = await snowflakes.issue(request);
          const { tag, generation, count } = request;
          if (answer.status !== "issued") note(`${tag} g${generation}: ${answer.status}`);
          else if (count > 0) note(`${tag} g${generation}: ${answer.first}+${count}`);
          return answer;
        },
      },
      workers: {
        ...workers,
        lease: async (request) => {
          const answer = await workers.lease(request);
          const which = answer.status === "done" ? `worker ${answer.workerId}` : answer.status;
          note(`${request.tag} g${request.generation}: ${which}`);
          return answer;
        },
      },
    };
  }

  #token(): bigint {
    return (BigInt(`0x${this.world.dice.token().slice(0, 16)}`) >> 1n) | 1n;
  }

  #note(what: string): void {
    this.trace.note(this.place, what);
  }
}
