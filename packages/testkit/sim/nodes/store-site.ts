import { type CallAnswers, type CallArgs, STORE_CALLS, type StoreCall } from "@idmint/core/server";
import { doneInMemory, MemoryDatabase, type MemorySnapshot } from "../../src/index.ts";
import type { Badges } from "../access/badges.ts";
import type { TokenLog } from "../access/token-log.ts";
import type { Checker } from "../check/checker.ts";
import { MarksHeard } from "../check/redis-log.ts";
import { largeGap } from "../plan.ts";
import type { EventQueue } from "../world/queue.ts";
import { Dice } from "../world/random.ts";
import type { Trace } from "../world/trace.ts";
import { World } from "../world/world.ts";

/** How often a state is kept to which the store may go back, and how many. */
const SNAPSHOT_MS = 1_700;
const MOST_SNAPSHOTS = 12;

/** What is wrong with the store for a while. */
export interface StoreTrouble {
  /** It refuses connections. */
  readonly isDown?: boolean;
  /** It takes requests and does nothing. */
  readonly hangs?: boolean;
  /** Mean of the time that each request waits before it is done. */
  readonly slowMs?: number;
  /** Share of answers that get lost when all is done. */
  readonly lostAnswers?: number;
  /** It has no room for what grows: it grants nothing and makes nothing, and tells what there is. */
  readonly isFull?: boolean;
  /** Share of requests that are refused before anything is done. */
  readonly refusals?: number;
}

/** What a plan may do to the store model on purpose, to see that it is noticed. */
export interface PlantedStore {
  /** Changes what is asked of the store. */
  readonly asked?: <Name extends StoreCall>(name: Name, args: CallArgs[Name]) => CallArgs[Name];
  /** Changes what it answers. */
  readonly answered?: <Name extends StoreCall>(
    name: Name,
    answer: CallAnswers[Name],
  ) => CallAnswers[Name];
  /** Whether a server that sees a store which went back does not write that down. */
  readonly forgetsMarks?: boolean;
}

/** What becomes of a request. */
export type StoreFate = "done" | "lost" | "down" | "full" | "refused" | "unheard";

interface Kept {
  readonly atMs: number;
  readonly snapshot: MemorySnapshot;
  readonly forgotten: ReadonlyMap<string, bigint>;
}

/** A store that grants: its rows, and the numbers of rows of servers when they were forgotten, a trace that all stores keep. */
export interface Primary {
  readonly database: MemoryDatabase;
  forgotten: Map<string, bigint>;
}

/** Whether it refuses to grant until somebody accepts it. */
export function isRefused({ database }: Primary): boolean {
  return database.mark !== "" || database.identity !== database.acceptedIdentity;
}

function forget({ database, forgotten }: Primary, keys: CallArgs["forgetNodes"][0]): void {
  for (const { id, renewals } of keys) {
    const row = database.nodes.get(id);
    if (row === undefined || (renewals !== undefined && row.renewals !== renewals)) continue;
    forgotten.set(id, row.renewals);
  }
}

interface StoreSitePorts {
  readonly queue: EventQueue;
  readonly trace: Trace;
  readonly checker: Checker;
  readonly badges: Pick<Badges, "first" | "log">;
}

/** The store of a history, where it stands: its rows, its clock, and what is wrong with it. */
export class StoreSite {
  readonly world: World;
  readonly database: MemoryDatabase;
  readonly planted: PlantedStore;
  readonly marksHeard = new MarksHeard();
  readonly tokens: TokenLog;
  /** How often it was accepted. */
  accepts = 0;
  readonly #main: Primary;
  /** What some servers reach in its place. */
  #other: { readonly primary: Primary; readonly places: ReadonlySet<string> } | undefined;
  readonly #queue: EventQueue;
  readonly #trace: Trace;
  readonly #checker: Checker;
  readonly #dice: Dice;
  readonly #troubles = new Set<StoreTrouble>();
  readonly #snapshots: Kept[] = [];
  /** Who claims something, by the id that it goes by in the store. */
  readonly #claimants = new Map<string, string>();

  constructor(
    seed: string,
    { queue, trace, checker, badges }: StoreSitePorts,
    planted: PlantedStore = {},
  ) {
    this.world = new World("store", seed, queue);
    this.#dice = new Dice(`${seed}/store troubles`);
    this.#main = this.#newPrimary();
    this.database = this.#main.database;
    this.#queue = queue;
    this.#trace = trace;
    this.#checker = checker;
    this.planted = planted;
    this.tokens = badges.log;
    this.database.access = { version: "first", tokens: badges.first };
    this.#keepSnapshots();
  }

  /**
   * Some servers reach a copy of the store for a while, which looks like it and grants as it does. What they did there is lost when
   * they reach the store again. Undefined: it is refused, or there are two already.
   */
  split(places: readonly string[]): (() => void) | undefined {
    if (this.isRefused || this.#other !== undefined) return undefined;
    const primary = this.#newPrimary();
    primary.database.restore(this.database.snapshot());
    primary.database.identity = this.database.identity;
    primary.forgotten = new Map(this.#main.forgotten);
    this.#other = { primary, places: new Set(places) };
    const tell = (isNow: boolean): void => {
      this.tokens.split(isNow);
      this.#checker.storeIsSplit(isNow);
    };
    tell(true);
    this.#trace.note("store", `is another one to ${places.join(" ")}`);
    return () => {
      this.#other = undefined;
      tell(false);
    };
  }

  /** What somebody reaches. */
  reachedBy(who: string): Primary {
    const isOther = this.#other?.places.has(who.split("#")[0] ?? who);
    return isOther === true && this.#other !== undefined ? this.#other.primary : this.#main;
  }

  #newPrimary(): Primary {
    const { world } = this;
    const wallClock = (): number => Math.floor(world.wall());
    const database = new MemoryDatabase({ wallClock, randomToken: () => world.dice.token() });
    return { database, forgotten: new Map() };
  }

  disturb(trouble: StoreTrouble): () => void {
    this.#troubles.add(trouble);
    return () => void this.#troubles.delete(trouble);
  }

  /** How a request fares that arrives now. */
  fate(name: StoreCall): { readonly delayMs: number; readonly is: StoreFate } {
    const dice = this.#dice;
    let delayMs = 0;
    let is: StoreFate = "done";
    for (const trouble of this.#troubles) {
      const { isDown, hangs, slowMs, isFull, lostAnswers = 0, refusals = 0 } = trouble;
      if (slowMs !== undefined) delayMs += dice.about(slowMs);
      if (isDown === true) is = "down";
      else if (hangs === true) is = "lost";
      else if (isFull === true && STORE_CALLS[name].effect === "write" && name !== "changes")
        is = "full";
      else if (dice.chance(refusals)) is = "refused";
      else if (dice.chance(lostAnswers)) is = "unheard";
    }
    return { delayMs, is };
  }

  /** Does what is asked, at once. */
  run<Name extends StoreCall>(who: string, name: Name, asked: CallArgs[Name]): CallAnswers[Name] {
    const args = this.planted.asked?.(name, asked) ?? asked;
    const primary = this.reachedBy(who);
    if (name === "forgetNodes") forget(primary, args[0] as CallArgs["forgetNodes"][0]);
    if (name === "claim") this.#claimants.set((args[0] as CallArgs["claim"][0]).claimant.id, who);
    const heard =
      name === "accept" ? this.#heardBy(primary, args as CallArgs["accept"]) : undefined;
    const done = doneInMemory(primary.database, name, args);
    // Whether or not who accepts it hears that it is done.
    if (heard !== undefined) this.#checker.accepted(heard);
    const answer = this.planted.answered?.(name, done) ?? done;
    this.#note(who, name, args, answer);
    return answer;
  }

  /** The servers that said all when an accept asked; undefined: it asks nobody, or its gap is large enough for all. */
  #heardBy(
    { database }: Primary,
    [gap, , , , asked]: CallArgs["accept"],
  ): ReadonlySet<string> | undefined {
    if (asked === undefined || gap >= largeGap(this.accepts)) return undefined;
    const spoken = [...(database.ask?.claimants.values() ?? [])].filter((one) => one.hasSpoken);
    return new Set(spoken.flatMap(({ id }) => this.#claimants.get(id) ?? []));
  }

  /** A server saw that the store went back, and writes it down. */
  mark(who: string, why: string): void {
    if (this.planted.forgetsMarks === true) return;
    this.#trace.note(who, `marks the store: ${why}`);
    this.reachedBy(who).database.mark = why;
    this.#checker.storeIsSeen();
  }

  /** The store goes back to what it was, so many milliseconds ago at least. `isSeen`: as another one, which is refused at once. */
  goBack(byMs: number, isSeen: boolean): boolean {
    const before = this.#queue.now - byMs;
    const kept = this.#snapshots.findLast(({ atMs }) => atMs <= before);
    if (kept === undefined) return false;
    this.database.restore(kept.snapshot);
    this.#main.forgotten = new Map(kept.forgotten);
    if (isSeen) this.database.move();
    this.#trace.note("store", `is as it was at ${kept.atMs.toFixed(0)}, seen ${isSeen}`);
    // What came after is of a history that is lost.
    this.#snapshots.splice(this.#snapshots.indexOf(kept) + 1);
    this.tokens.wentBack();
    this.#checker.storeWentBack({ isUnseen: !this.isRefused });
    return true;
  }

  /** Whether it refuses to grant until somebody accepts it. */
  get isRefused(): boolean {
    return isRefused(this.#main);
  }

  /** Whether an accept that is under way, or was given up, asked for claims. */
  get isAsked(): boolean {
    const { ask } = this.database;
    return ask !== undefined && ask.expiresAtMs > this.database.now();
  }

  #keepSnapshots(): void {
    const forgotten = new Map(this.#main.forgotten);
    this.#snapshots.push({ atMs: this.#queue.now, snapshot: this.database.snapshot(), forgotten });
    if (this.#snapshots.length > MOST_SNAPSHOTS) this.#snapshots.shift();
    this.#queue.after(SNAPSHOT_MS, () => this.#keepSnapshots());
  }

  #note<Name extends StoreCall>(
    who: string,
    name: Name,
    args: CallArgs[Name],
    answer: CallAnswers[Name],
  ): void {
    if (name === "grant") {
      const requests = args[0] as CallArgs["grant"][0];
      (answer as CallAnswers["grant"]).forEach((grant, at) => {
        const tag = requests[at]?.tag ?? "";
        if (grant.outcome !== "granted") {
          const why = grant.outcome === "refused" ? grant.reason : grant.outcome;
          this.#trace.note(who, `is refused ${tag}: ${why}`);
          return;
        }
        const { base, count, version, epoch, period } = grant;
        this.#trace.note(who, `is granted ${tag} ${base}+${count} v${version} e${epoch}`);
        const last = base + BigInt(count) - 1n;
        this.#checker.granted(who, { tag, period: period?.start ?? "", base, last });
      });
    } else if (name === "giveBack") {
      const requests = args[0] as CallArgs["giveBack"][0];
      (answer as CallAnswers["giveBack"]).forEach((count, at) => {
        const request = requests[at];
        if (request === undefined) return;
        const { tag, from, to } = request;
        this.#trace.note(who, `gives back ${tag} ${from}…${to}: ${count}`);
        const last = from + BigInt(count) - 1n;
        if (count > 0) this.#checker.givenBack(who, { tag, base: from, last });
      });
    } else if (name === "raise") {
      const raised = answer as CallAnswers["raise"];
      if (raised.outcome !== "raised") return;
      const { tag, before, floor: last, generation } = raised;
      this.#trace.note(who, `raises ${tag} g${generation} from ${before} to ${last}`);
      this.#checker.granted(who, { tag, period: "", base: before + 1n, last });
    } else if (name === "accept") {
      this.#trace.note(who, `accepts the store: ${this.database.incarnation}`);
      this.accepts++;
      this.#checker.storeIsSeen();
    } else if (name === "addToken") {
      const [token] = args as CallArgs["addToken"];
      if (answer === true) this.tokens.added(token, this.#queue.now);
      this.#trace.note(who, `adds token ${token.id} of ${token.principal}: ${answer === true}`);
    } else if (name === "removeToken") {
      const [id] = args as CallArgs["removeToken"];
      if (answer === true) this.tokens.removed(id, this.#queue.now);
      this.#trace.note(who, `removes token ${id}: ${answer === true}`);
    } else if (name !== "changes" && name !== "readTokens" && name !== "exchangeMarks") {
      this.#trace.note(who, name);
    }
  }
}
