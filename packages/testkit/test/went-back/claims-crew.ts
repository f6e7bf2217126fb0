// Servers that are killed and kept running, and what each process of them gave.
import { setTimeout as pause } from "node:timers/promises";
import { IdmintError } from "@idmint/client";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";

export const TAGS: readonly string[] = ["segments", "strict"];
const CALL_MS = 2_000;

/** One process of a server. */
export interface Life {
  readonly server: FleetServer;
  readonly name: string;
  readonly spawnedAt: number;
  /** When it gave its first id. */
  servedAt: number;
  /** When it was killed, or was found dead. */
  endedAt: number;
}

/** A call that was answered; `reason`: empty with ids. */
export interface Call {
  readonly server: FleetServer;
  readonly tag: string;
  readonly askedAt: number;
  readonly reason: string;
}

interface Gift {
  readonly life: Life;
  readonly at: number;
}

export class Given {
  readonly #gifts = new Map<string, Map<bigint, Gift>>();
  readonly repeats: string[] = [];

  add(tag: string, id: bigint, life: Life): void {
    const gifts = this.#gifts.get(tag) ?? new Map<bigint, Gift>();
    this.#gifts.set(tag, gifts);
    const gift = { life, at: now() };
    const earlier = gifts.get(id);
    if (earlier === undefined) gifts.set(id, gift);
    else this.repeats.push(`${tag} ${id}: ${textOf(earlier)} and ${textOf(gift)}`);
  }

  get count(): number {
    return [...this.#gifts.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** The highest id of a tag that lives of these gave until then; 0: none. */
  highest(tag: string, lives: ReadonlySet<Life>, until: number): bigint {
    let highest = 0n;
    for (const [id, { life, at }] of this.#gifts.get(tag) ?? []) {
      if (id > highest && at <= until && lives.has(life)) highest = id;
    }
    return highest;
  }
}

const startedAt = performance.now();

/** Milliseconds since this file was read, for people. */
export function now(): number {
  return Math.round(performance.now() - startedAt);
}

function textOf({ life, at }: Gift): string {
  return `${life.name} at ${at}`;
}

/** Servers that are kept running, and callers of each. */
export class Crew {
  readonly given: Given = new Given();
  readonly lives: Life[] = [];
  readonly said: string[] = [];
  readonly #fleet: Fleet;
  readonly #heard: (call: Call) => void;
  readonly #calls: Promise<void>[] = [];
  readonly #added: FleetServer[] = [];
  readonly #stop = new AbortController();
  /** Servers that are to stay down. */
  readonly #down = new Set<FleetServer>();

  /** `heard` is told of every call. */
  constructor(fleet: Fleet, heard: (call: Call) => void = () => undefined) {
    this.#fleet = fleet;
    this.#heard = heard;
    for (const server of fleet.servers) {
      this.#lives(server);
      this.#call(server);
    }
    this.#calls.push(this.#keep());
  }

  get servers(): readonly FleetServer[] {
    return [...this.#fleet.servers, ...this.#added];
  }

  say(what: string): void {
    this.said.push(`${now()} ${what}`);
  }

  lifeOf(server: FleetServer): Life | undefined {
    const last = this.lives.findLast((life) => life.server === server);
    return last === undefined || last.endedAt < Infinity ? undefined : last;
  }

  /** Kills a server; after so long it is begun again, or stays down until it is `up`. */
  async kill(server: FleetServer, downMs = Infinity): Promise<void> {
    const life = this.lifeOf(server);
    if (life === undefined) return;
    this.#down.add(server);
    this.say(`kill ${life.name}`);
    await server.kill();
    life.endedAt = now();
    if (downMs === Infinity) return;
    await pause(downMs);
    this.up(server);
  }

  up(server: FleetServer): void {
    this.#down.delete(server);
  }

  async add(): Promise<void> {
    const server = await this.#fleet.anotherServer(`new server ${this.#added.length + 1}`);
    this.#added.push(server);
    this.say(`add ${server.name}`);
    this.#call(server);
  }

  /** One id of each tag, from a server that runs. */
  async draw(server: FleetServer): Promise<boolean> {
    for (const tag of TAGS) if (!(await this.#draw(server, tag, 1))) return false;
    return true;
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#calls);
    for (const server of this.#added) {
      server.api[Symbol.dispose]();
      if (server.runs) await server.kill();
    }
  }

  describe(): string {
    return [this.said.join("\n"), ...this.servers.map((server) => server.describe())].join("\n");
  }

  #lives(server: FleetServer): void {
    const number = this.lives.filter((life) => life.server === server).length + 1;
    const name = `${server.name} (${number})`;
    this.lives.push({ server, name, spawnedAt: now(), servedAt: Infinity, endedAt: Infinity });
  }

  /** Starts again whatever ended, as a service manager would. */
  async #keep(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      for (const server of this.servers) {
        if (server.runs || this.#down.has(server) || server.ageMs < 300) continue;
        const life = this.lifeOf(server);
        if (life !== undefined) life.endedAt = now();
        server.spawn();
        this.#lives(server);
        this.say(`start ${this.lifeOf(server)?.name ?? ""}`);
      }
      await pause(50);
    }
  }

  #call(server: FleetServer): void {
    const callOf = async (tag: string, count: number): Promise<void> => {
      while (!this.#stop.signal.aborted) {
        if (!(await this.#draw(server, tag, count))) await pause(20);
        // So many that a gap can cover what is lost.
        await pause(20);
      }
    };
    for (const tag of TAGS) this.#calls.push(callOf(tag, 1), callOf(tag, 7));
  }

  async #draw(server: FleetServer, tag: string, count: number): Promise<boolean> {
    const life = this.lifeOf(server);
    if (life === undefined) return false;
    const askedAt = now();
    try {
      const { ids } = await server.api.generateIds({ tag, count, asList: true }, CALL_MS);
      for (const id of ids) this.given.add(tag, id, life);
      life.servedAt = Math.min(life.servedAt, now());
      this.#heard({ server, tag, askedAt, reason: "" });
      return true;
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      if (error.reason === "INTERNAL") throw thrown;
      this.#heard({ server, tag, askedAt, reason: error.reason });
      return false;
    }
  }
}
