// A store, servers on it, and programs that call them: everything that may befall them goes through here.
import { mkdirSync } from "node:fs";
import path from "node:path";
import { FakeWallClock } from "../../src/faketime.ts";
import type { Api } from "../../src/fleet/api.ts";
import { Fleet, type FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import type { Dice } from "../../sim/world/random.ts";
import { Link } from "../link.ts";
import type { Journal } from "../journal.ts";
import { FOREIGN_LOADS, MORE_LOADS, RAW_LOADS, SDK_LOADS, type SiteTag } from "../tags.ts";
import { Caller, type CallerKind } from "./crew.ts";
import { made } from "./tag-calls.ts";

/** Something that befalls a store. It resolves when the store is well again. */
export type StoreFault = (site: Site, dice: Dice) => Promise<void>;

/** A store that servers can be started on. */
export interface Stage extends AsyncDisposable {
  readonly name: string;
  /** For commands, and for the judges. */
  readonly storeUrl: string;
  readonly servers: number;
  readonly hasLedger: boolean;
  /** What a server reaches through ways that can be cut. */
  readonly ports: readonly number[];
  /** The URL by other ports, in the order of `ports`. */
  readonly urlBy: (ports: readonly number[]) => string;
  readonly env: Readonly<Record<string, string>>;
  readonly tags: readonly SiteTag[];
  readonly faults: Readonly<Record<string, StoreFault>>;
  /** Runs before the servers are started. */
  readonly prepare?: () => Promise<void>;
}

/** A server with all ways to it and from it. */
export interface SiteServer {
  readonly name: string;
  readonly server: FleetServer;
  /** Callers come by these. */
  readonly doors: readonly Link[];
  /** It reaches its store by these. */
  readonly ways: readonly Link[];
  /** Undefined: it has the machine's. */
  readonly clock: FakeWallClock | undefined;
}

const RECOVERY_MS = 90_000;
/** As callers wait: a busy machine answers nothing within a second. */
const PROBE_MS = 5_000;
const STRICT_TAG = "bills";

/** Close it. */
export class Site implements AsyncDisposable {
  readonly stage: Stage;
  readonly fleet: Fleet;
  readonly servers: readonly SiteServer[];
  readonly callers: readonly Caller[];
  readonly journal: Journal;
  /** Of the histories. */
  readonly folder: string;

  private constructor(
    stage: Stage,
    parts: Pick<Site, "callers" | "fleet" | "folder" | "journal" | "servers">,
  ) {
    this.stage = stage;
    this.fleet = parts.fleet;
    this.servers = parts.servers;
    this.callers = parts.callers;
    this.journal = parts.journal;
    this.folder = parts.folder;
  }

  static async start(
    stage: Stage,
    journal: Journal,
    out: string,
    python?: readonly string[],
  ): Promise<Site> {
    const folder = path.join(out, stage.name);
    mkdirSync(folder, { recursive: true });
    await stage.prepare?.();
    const { fleet, servers } = await startServers(stage);
    try {
      await createTags(fleet.first.api, stage.tags);
      const callers = callersOf(stage, { servers, folder, python });
      await Promise.all(callers.map((caller) => caller.start()));
      return new Site(stage, { fleet, servers, callers, journal, folder });
    } catch (thrown) {
      await closeAll(fleet, servers);
      throw thrown;
    }
  }

  get name(): string {
    return this.stage.name;
  }

  /** Notes that something begins; the answer notes that it is over. */
  note(of: Parameters<Journal["begin"]>[1], kind: string, target?: string): () => void {
    return this.journal.begin(this.name, of, kind, target);
  }

  /** Asks the servers that run in turn until one answers. */
  async byAny<T>(what: string, ask: (api: Api) => Promise<T>): Promise<T> {
    let turn = 0;
    return until(
      `${this.name}: ${what}`,
      async () => {
        const running = this.servers.filter(({ server }) => server.listens);
        const server = running[turn++ % Math.max(1, running.length)];
        return server === undefined ? undefined : [await ask(server.server.api)];
      },
      { withinMs: RECOVERY_MS, everyMs: 50 },
    ).then(([answer]) => answer as T);
  }

  /** Waits until some server issues an id that only the store can count, or another one. */
  async issues(tag: string = STRICT_TAG): Promise<void> {
    await this.byAny(`issues ${tag}`, (api) => api.generateId(tag, PROBE_MS));
  }

  /** The store is away while this runs, and until an id can be counted again. */
  async away(
    kind: string,
    run: () => Promise<void>,
    { needs = "", tag = STRICT_TAG }: { readonly needs?: string; readonly tag?: string } = {},
  ): Promise<void> {
    const isOver = this.note("store", kind, needs);
    await run();
    await this.issues(tag);
    isOver();
  }

  /** Waits until every server issues ids of all tags. */
  async settled(): Promise<void> {
    for (const { tag } of this.stage.tags) {
      // After an accept snowflakes begin when the clock is there.
      if (tag.kind?.$case === "snowflake" || tag.kind?.$case === "redisSnowflake") continue;
      await Promise.all(
        this.servers.map(({ name, server }) =>
          until(`${this.name} ${name} issues ${tag.name}`, () => server.api.generateId(tag.name), {
            withinMs: RECOVERY_MS,
            everyMs: 100,
          }),
        ),
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.callers.map(({ process }) => process.kill()));
    await closeAll(this.fleet, this.servers);
    await this.stage[Symbol.asyncDispose]();
  }
}

async function closeAll(fleet: Fleet, servers: readonly SiteServer[]): Promise<void> {
  await fleet.close();
  for (const { doors, ways, clock } of servers) {
    for (const link of [...doors, ...ways]) await link.close();
    clock?.[Symbol.dispose]();
  }
}

async function startServers(
  stage: Stage,
): Promise<{ readonly fleet: Fleet; readonly servers: readonly SiteServer[] }> {
  const targets = Array.from({ length: stage.servers }, () => ({ grpc: 0, http: 0 }));
  const parts = await Promise.all(
    targets.map(async (target, at) => ({
      doors: [await Link.open(() => target.grpc), await Link.open(() => target.http)],
      ways: await Promise.all(stage.ports.map((port) => Link.open(() => port))),
      // A clock that can be set costs a system call each time it is read, so one server has it.
      clock: at === stage.servers - 1 ? new FakeWallClock(0) : undefined,
    })),
  );
  const envOf = parts.map(({ doors: [door], ways, clock }, at) => ({
    IDMINT_STORE_URL: stage.urlBy(ways.map(({ port }) => port)),
    IDMINT_NODE_ADVERTISE: door?.address ?? "",
    IDMINT_INSTANCE: `${stage.name}-${at + 1}`,
    ...clock?.env,
  }));
  const { storeUrl } = stage;
  const env = { IDMINT_DRAIN_TIME: "2s", ...stage.env };
  const fleet = await Fleet.start({ servers: stage.servers, storeUrl, env, envOf });
  const servers = parts.map((its, at) => {
    const server = fleet.servers[at];
    const target = targets[at];
    if (server === undefined || target === undefined) throw new Error("a server is missing");
    target.grpc = portOf(server.address);
    target.http = portOf(server.httpOrigin);
    return { name: `server-${at + 1}`, server, ...its };
  });
  return { fleet, servers };
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

async function createTags(api: Api, tags: readonly SiteTag[]): Promise<void> {
  for (const { tag } of tags) {
    // A busy machine lets a standby confirm too late; then nobody knows whether the tag is there.
    await until(`tag ${tag.name} is made`, () => made(api, tag), { withinMs: RECOVERY_MS });
  }
}

function callersOf(
  stage: Stage,
  its: {
    readonly servers: readonly SiteServer[];
    readonly folder: string;
    readonly python: readonly string[] | undefined;
  },
): readonly Caller[] {
  const grpc = its.servers.map(({ doors: [door] }) => door?.address ?? "");
  const http = its.servers.map(({ doors: [, door] }) => `http://${door?.address ?? ""}`);
  const names = new Set(stage.tags.map(({ tag }) => tag.name));
  const more = MORE_LOADS.filter(({ tag }) => names.has(tag));
  const places = [
    ["sdk-1", "sdk", grpc, [...SDK_LOADS, ...more]],
    ["sdk-2", "sdk", grpc, [...SDK_LOADS, ...more]],
    ["raw-1", "raw", grpc, [...RAW_LOADS, ...more]],
    ["http-1", "http", http, FOREIGN_LOADS],
    ...(its.python === undefined ? [] : [["python-1", "python", grpc, FOREIGN_LOADS] as const]),
  ] as const satisfies readonly (readonly [string, CallerKind, readonly string[], unknown])[];
  return places.map(([name, kind, addresses, loads]) => {
    const words = kind === "python" ? its.python : undefined;
    return new Caller(name, its.folder, { kind, addresses, loads }, words);
  });
}
