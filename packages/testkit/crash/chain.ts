// A chain of points on one store: life after life, each of a server that dies at the next point, under callers that go on.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { serverEnv } from "../src/doors.ts";
import { freePort } from "../src/fleet/ports.ts";
import { until } from "../src/fleet/until.ts";
import { MAX_GAP_SEGMENTS } from "./book.ts";
import type { Point } from "./library.ts";
import { begin, type End, endOf, type NamedPoint, serving, type Subject } from "./life.ts";
import { Callers, type CountedTag, SEGMENT } from "./load.ts";
import type { CommandName } from "./points.ts";
import type { Database, FreshStore } from "./stores.ts";

/** What a chain of points showed. */
export interface ChainResult {
  readonly tried: number;
  /** Points at which a process died. */
  readonly reached: number;
  /** Of these, the lives that had answered calls before. */
  readonly answering: number;
  readonly repeats: number;
  /** In segments; the largest of all lives. */
  readonly largestGap: number;
  readonly ids: number;
  /** What is wrong, in words, repeats and gaps included. */
  readonly faults: readonly string[];
  /** Where processes died, and how often: a system call and the file or the other end. */
  readonly places: ReadonlyMap<string, number>;
}

export interface ChainOptions {
  readonly program: string;
  readonly database: Database;
  readonly points: readonly (NamedPoint | Point)[];
  /** Steps of each caller in a life; default: so many that 150 calls of each class are made. */
  readonly steps?: number;
  /** Where something is wrong, no further points are tried. Default: false. */
  readonly untilFault?: boolean;
  /** Told after each life. */
  readonly onLife?: (line: string) => void;
}

/** Kills servers: one life for each point, on one store. */
export async function runChain(options: ChainOptions): Promise<ChainResult> {
  return onFreshStore(options, async (chain) => {
    await using callers = new Callers(chain.address);
    await chain.begin(callers);
    for (const point of options.points) {
      await chain.life(callers, point);
      if (options.untilFault === true && chain.result(callers).faults.length > 0) break;
    }
    await chain.end(callers);
    return chain.result(callers);
  });
}

/**
 * Kills a command that changes a store, does it again as an operator would, and has a server go on. A class of calls is over when
 * the command ends before its point.
 */
export async function runCommands(
  command: CommandName,
  options: ChainOptions,
): Promise<ChainResult> {
  const results: ChainResult[] = [];
  const over = new Set<string>();
  for (const point of options.points) {
    if ("call" in point && over.has(point.call)) continue;
    const result = await onFreshStore({ ...options, points: [point] }, async (chain) => {
      await using callers = new Callers(chain.address, "no snowflakes");
      if (command === "accept") {
        await chain.begin(callers);
        await chain.end(callers);
      }
      await chain.command(WORDS[command], point);
      if (command === "migrate") await chain.begin(callers);
      await chain.end(callers);
      return chain.result(callers);
    });
    if ("call" in point && result.reached === 0 && result.faults.length === 0) over.add(point.call);
    else results.push(result);
  }
  return together(results);
}

/** What several chains showed. */
export function together(results: readonly ChainResult[]): ChainResult {
  const sum = (of: (result: ChainResult) => number): number =>
    results.reduce((total, result) => total + of(result), 0);
  const places = new Map<string, number>();
  for (const [place, times] of results.flatMap((result) => [...result.places])) {
    places.set(place, (places.get(place) ?? 0) + times);
  }
  return {
    tried: sum(({ tried }) => tried),
    reached: sum(({ reached }) => reached),
    answering: sum(({ answering }) => answering),
    repeats: sum(({ repeats }) => repeats),
    largestGap: Math.max(0, ...results.map(({ largestGap }) => largestGap)),
    ids: sum(({ ids }) => ids),
    faults: results.flatMap(({ faults }) => faults),
    places,
  };
}

/** Of a command that may be tried again. */
const EXIT_UNAVAILABLE = 4;
const COMMAND_MS = 120_000;

const WORDS = {
  migrate: ["migrate", "--yes"],
  accept: ["store", "accept", "--gap", "0", "--yes"],
} as const;

async function onFreshStore(
  options: ChainOptions,
  run: (chain: Chain) => Promise<ChainResult>,
): Promise<ChainResult> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-crash-"));
  await using store = await options.database.fresh();
  const address = `127.0.0.1:${await freePort()}`;
  const subject: Subject = {
    program: options.program,
    report: path.join(folder, "report"),
    env: {
      ...serverEnv(),
      IDMINT_STORE_URL: store.url,
      IDMINT_GRPC_ADDRESS: address,
      IDMINT_HTTP_ADDRESS: `127.0.0.1:${await freePort()}`,
      IDMINT_SNOWFLAKE_CACHE_FILE: path.join(folder, "kept/leases"),
      IDMINT_INSTANCE: "crash",
    },
  };
  try {
    return await run(new Chain(options, subject, store, address));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

class Chain {
  readonly #options: ChainOptions;
  readonly #subject: Subject;
  readonly #store: FreshStore;
  readonly address: string;
  readonly #places = new Map<string, number>();
  readonly #faults: string[] = [];
  #reached = 0;
  #answering = 0;
  #largestGap = 0;

  constructor(options: ChainOptions, subject: Subject, store: FreshStore, address: string) {
    this.#options = options;
    this.#subject = subject;
    this.#store = store;
    this.address = address;
  }

  /** Makes the store, where nobody did, and what all lives use. */
  async begin(callers: Callers): Promise<void> {
    await this.#command(WORDS.migrate);
    await this.#whole(async () => callers.makeTags(this.address));
  }

  async end(callers: Callers): Promise<void> {
    await this.#whole(async () => callers.goOn(this.address));
    await this.#reckon(callers, "the last life");
  }

  /** A command that dies, and the same again. */
  async command(words: readonly string[], point: NamedPoint | Point): Promise<void> {
    const child = begin(this.#subject, words, point);
    const end = await endOf(child, this.#subject);
    this.#ended(point, end, 0);
    await this.#command(words);
  }

  /** Until it is done: an accept that was killed keeps others away for a minute. */
  async #command(words: readonly string[]): Promise<void> {
    const isDone = async (): Promise<boolean> => {
      const child = begin(this.#subject, words, undefined);
      const end = await endOf(child, this.#subject);
      if (end.kind === "stopped") return true;
      if (child.exit?.code === EXIT_UNAVAILABLE) return false;
      throw new Error(child.describe());
    };
    await until(words.join(" "), isDone, { withinMs: COMMAND_MS, everyMs: 2_000 });
  }

  /** A life that nothing ends but a signal. */
  async #whole(work: () => Promise<void>): Promise<void> {
    const child = begin(this.#subject, ["serve", "--json"], undefined);
    if (!(await serving(child))) throw new Error(child.describe());
    await work();
    child.signal("SIGTERM");
    const end = await endOf(child, this.#subject);
    if (end.kind !== "stopped") throw new Error(child.describe());
  }

  async life(callers: Callers, point: NamedPoint | Point): Promise<void> {
    const name = nameOf(point);
    const startedAt = performance.now();
    const child = begin(this.#subject, ["serve", "--json"], point);
    const answered = (await serving(child))
      ? await callers.live(this.address, this.#options.steps)
      : 0;
    // One that did not come to its point is told to stop, which is work too.
    child.signal("SIGTERM");
    const end = await endOf(child, this.#subject);
    this.#ended(point, end, answered);
    const gaps = await this.#reckon(callers, name);
    const how =
      end.kind === "killed"
        ? end.where
        : end.kind === "stopped"
          ? `not reached (${end.counts})`
          : "wrong";
    const ms = Math.round(performance.now() - startedAt);
    this.#options.onLife?.(`${name}: ${how}; ${answered} answers, gaps ${gaps}, ${ms} ms`);
  }

  #ended(point: NamedPoint | Point, end: End, answered: number): void {
    const name = nameOf(point);
    // At a call a process dies if it makes that many; a moment with a name is one that the callers' work has to bring about.
    if (end.kind === "stopped" && "failpoint" in point) this.#faults.push(`${name}: not reached`);
    if (end.kind === "wrong") this.#faults.push(`${name}: ${end.what}`);
    if (end.kind !== "killed") return;
    this.#reached++;
    if (answered > 0) this.#answering++;
    const place = placeIn(end.where, new URL(this.#store.url).port);
    this.#places.set(place, (this.#places.get(place) ?? 0) + 1);
  }

  /** Holds what is durable against what callers were told. */
  async #reckon(callers: Callers, name: string): Promise<string> {
    const gapOf = async (tag: CountedTag): Promise<bigint> => {
      const floor = await this.#store.floorOf(tag);
      const { highest } = callers.books[tag];
      if (highest > floor)
        this.#faults.push(`${name}: ${tag}: ${highest} is above the floor ${floor}`);
      return callers.books[tag].gapAt(floor, callers.askedInVain[tag]);
    };
    const orders = await gapOf("orders");
    const strict = await gapOf("strict");
    this.#largestGap = Math.max(this.#largestGap, Number(orders) / SEGMENT);
    if (orders > BigInt(MAX_GAP_SEGMENTS * SEGMENT)) {
      this.#faults.push(`${name}: a gap of ${orders} ids, of segments of ${SEGMENT}`);
    }
    // A sequence has no segments: only what calls in flight had asked for may be lost.
    if (strict > 0n) this.#faults.push(`${name}: a gap of ${strict} ids in a sequence`);
    const moved = await this.#store.floorOf("moved");
    if (moved < callers.advancedTo) {
      this.#faults.push(`${name}: the floor is ${moved}, and ${callers.advancedTo} was answered`);
    }
    return `${orders} and ${strict}`;
  }

  result(callers: Callers): ChainResult {
    const books = Object.entries(callers.books);
    const repeats = books.flatMap(([tag, book]) => book.repeats.map((id) => `${tag} ${id}: twice`));
    return {
      tried: this.#options.points.length,
      reached: this.#reached,
      answering: this.#answering,
      repeats: repeats.length,
      largestGap: this.#largestGap,
      ids: books.reduce((sum, [, { received }]) => sum + received, 0),
      faults: [...this.#faults, ...repeats, ...callers.order.inversions, ...callers.faults],
      places: this.#places,
    };
  }
}

function nameOf(point: NamedPoint | Point): string {
  if ("failpoint" in point) return `${point.failpoint} ${point.at}`;
  return `${point.isTorn ? "torn " : ""}${point.call} ${point.at}`;
}

/** `send 12 writev port 5432` without what differs from run to run. */
function placeIn(where: string, storePort: string): string {
  const [call = "", , system = "", ...place] = where.split(" ");
  if (call === "failpoint") return system;
  const at = place.join(" ");
  if (at === `port ${storePort}`) return `${system} to the store`;
  if (at.startsWith("port ")) return `${system} to a caller`;
  return `${system} ${path.basename(at).replace(/[0-9a-f-]{8,}/u, "…")}`;
}
