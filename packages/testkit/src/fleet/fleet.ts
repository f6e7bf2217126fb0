import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { serverEnv } from "../doors.ts";
import { builtOf, CLI } from "../program.ts";
import { Api } from "./api.ts";
import { Child, type Exit, runCli } from "./child.ts";
import type { LoadConfig, LoadReport } from "./load-config.ts";
import { freePort } from "./ports.ts";
import { until } from "./until.ts";

/** So long that only what hangs exceeds them, on a machine that does much else too. */
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 60_000;
/** Of a process whose store does not answer in time: try again. */
const EXIT_UNAVAILABLE = 4;
const LOAD_SCRIPTS = {
  sdk: "load-sdk.ts",
  grpc: "load-grpc.ts",
  history: "load-history.ts",
} as const;

export interface FleetOptions {
  readonly servers: number;
  /** `sqlite:PATH`, `postgres://…` or `etcd://…`; migrated before the first start. */
  readonly storeUrl: string;
  /** Further IDMINT_… variables for the servers. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further variables for each server, by its place. */
  readonly envOf?: readonly Readonly<Record<string, string>>[];
}

/** One server of a fleet: the same address through all its processes. */
export class FleetServer {
  readonly name: string;
  readonly address: string;
  /** Where its HTTP door is. */
  readonly httpOrigin: string;
  readonly api: Api;
  /** Entry of the build that its next process runs. */
  build: string = CLI;
  readonly #env: Readonly<Record<string, string>>;
  readonly #past: Child[] = [];
  #process: Child | undefined;

  constructor(name: string, port: number, env: Readonly<Record<string, string>>) {
    this.name = name;
    this.address = `127.0.0.1:${port}`;
    this.httpOrigin = `http://${env["IDMINT_HTTP_ADDRESS"] ?? ""}`;
    this.#env = { ...env, IDMINT_GRPC_ADDRESS: this.address };
    this.api = new Api(this.address);
  }

  /** The process that runs now; throws when there is none. */
  get process(): Child {
    if (this.#process === undefined) throw new Error(`${this.name} does not run`);
    return this.#process;
  }

  /** How long ago its last process was begun, in milliseconds; Infinity when there was none. */
  get ageMs(): number {
    return this.#process?.ageMs ?? Infinity;
  }

  get runs(): boolean {
    return this.#process !== undefined && this.#process.exit === undefined;
  }

  /** Whether its process has begun to listen: then it says where. */
  get listens(): boolean {
    return this.runs && this.process.stdout.includes("grpcAddress");
  }

  /** Starts a process without waiting for it. */
  spawn(): Child {
    if (this.runs) throw new Error(`${this.name} runs already`);
    const child = new Child(this.build, ["serve", "--json"], { name: this.name, env: this.#env });
    this.#process = child;
    this.#past.push(child);
    return child;
  }

  /** Starts a process and waits until it takes calls. One whose store is too busy is begun again, as a service manager does. */
  async start(): Promise<void> {
    let child = this.spawn();
    const isReady = async (): Promise<boolean> => {
      if (child.exit?.code === EXIT_UNAVAILABLE) child = this.spawn();
      // Who answers at its address before it listens is another server.
      return child.exit !== undefined || (this.listens && (await this.api.isServing()));
    };
    try {
      await until(`${this.name} takes calls`, isReady, { withinMs: START_TIMEOUT_MS });
    } catch (cause) {
      throw new Error(child.describe(), { cause });
    }
    if (child.exit !== undefined) throw new Error(child.describe());
  }

  /** Ends its process as a crash would. */
  async kill(): Promise<void> {
    await this.process.kill();
  }

  /** Tells it to stop, and waits for the end. */
  async stop(): Promise<Exit & { readonly tookMs: number }> {
    const start = performance.now();
    this.process.signal("SIGTERM");
    const exit = await this.process.waitForEnd(STOP_TIMEOUT_MS);
    return { ...exit, tookMs: performance.now() - start };
  }

  /** What its last processes said. */
  describe(): string {
    return this.#past
      .slice(-4)
      .map((child) => child.describe())
      .join("\n");
  }

  /** Processes that Node.js ended because of an error that nobody caught: it signs its last words. */
  get uncaught(): readonly Child[] {
    return this.#past.filter(({ stderr }) => /^Node\.js v\d/m.test(stderr));
  }
}

/** Servers on one store, callers, and the records of what the callers received. Close it. */
export class Fleet implements AsyncDisposable {
  readonly servers: readonly FleetServer[];
  /** For the files of this test; removed at the end. */
  readonly folder: string;
  readonly #storeEnv: Readonly<Record<string, string>>;
  readonly #callers: Child[] = [];
  /** At the same place as its caller. */
  readonly #records: string[] = [];

  private constructor(
    servers: readonly FleetServer[],
    folder: string,
    storeEnv: Readonly<Record<string, string>>,
  ) {
    this.servers = servers;
    this.folder = folder;
    this.#storeEnv = storeEnv;
  }

  /** Migrates the store, starts all servers at once and waits until they take calls. */
  static async start(options: FleetOptions): Promise<Fleet> {
    const folder = await mkdtemp(path.join(tmpdir(), "idmint-fleet-"));
    const storeEnv = { ...serverEnv(), IDMINT_STORE_URL: options.storeUrl, ...options.env };
    const ports = await Promise.all(
      Array.from({ length: options.servers }, async () => [await freePort(), await freePort()]),
    );
    const servers = ports.map(([grpc = 0, http = 0], at) => {
      const own = options.envOf?.[at];
      const env = { ...storeEnv, IDMINT_HTTP_ADDRESS: `127.0.0.1:${http}`, ...own };
      return new FleetServer(`server ${at + 1}`, grpc, env);
    });
    const fleet = new Fleet(servers, folder, storeEnv);
    try {
      await fleet.cli("migrate");
      await Promise.all(servers.map((server) => server.start()));
      return fleet;
    } catch (thrown) {
      await fleet.close();
      throw thrown;
    }
  }

  get addresses(): readonly string[] {
    return this.servers.map(({ address }) => address);
  }

  /** The first server; throws in a fleet without one. */
  get first(): FleetServer {
    const [first] = this.servers;
    if (first === undefined) throw new Error("a fleet without servers");
    return first;
  }

  /** A server that shares the fleet's store and is not started yet. */
  async anotherServer(name: string): Promise<FleetServer> {
    const env = { ...this.#storeEnv, IDMINT_HTTP_ADDRESS: `127.0.0.1:${await freePort()}` };
    return new FleetServer(name, await freePort(), env);
  }

  /** Runs a command of the CLI with the fleet's store; fails unless it ends with exit code 0. */
  async cli(...args: readonly string[]): Promise<string> {
    return this.cliOf(CLI, ...args);
  }

  /** The same of another build. */
  async cliOf(build: string, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runCli(args, this.#storeEnv, build);
    if (code !== 0) throw new Error(`idmint ${args.join(" ")}: exit code ${code}\n${stderr}`);
    return stdout;
  }

  /** Starts a process of callers, with further variables in its environment; their records are kept. */
  async startCallers(
    kind: keyof typeof LOAD_SCRIPTS,
    load: Omit<LoadConfig, "addresses" | "file"> & { readonly addresses?: readonly string[] },
    env: Readonly<Record<string, string>> = {},
  ): Promise<Child> {
    const at = this.#records.length;
    const file = path.join(this.folder, `${at}.${kind}.ids`);
    const config: LoadConfig = { addresses: this.addresses, ...load, file };
    const script = builtOf(`packages/testkit/src/fleet/${LOAD_SCRIPTS[kind]}`);
    const name = `${kind} callers ${at}`;
    const child = new Child(script, [JSON.stringify(config)], { name, env });
    this.#callers.push(child);
    this.#records.push(file);
    await child.waitForOutput("started");
    return child;
  }

  /** Tells callers to stop and answers their report; fails when they ended otherwise. */
  async stopCallers(child: Child): Promise<LoadReport> {
    child.signal("SIGTERM");
    const { code } = await child.waitForEnd(STOP_TIMEOUT_MS);
    const line = child.stdout.split("\n").find((each) => each.startsWith("report "));
    if (code !== 0 || line === undefined) throw new Error(child.describe());
    return JSON.parse(line.slice("report ".length)) as LoadReport;
  }

  /** Files of records of all callers so far. */
  get records(): readonly string[] {
    return this.#records;
  }

  /** The file of records of one process of callers. */
  recordsOf(child: Child): string {
    const file = this.#records[this.#callers.indexOf(child)];
    if (file === undefined) throw new Error(`${child.name} is not of this fleet`);
    return file;
  }

  /** What servers said, for a failed test. */
  describe(): string {
    return this.servers.map((server) => server.describe()).join("\n");
  }

  /** Throws when a server ended by an error of its own. */
  assertNoneCrashed(): void {
    const [crashed] = this.servers.flatMap(({ uncaught }) => uncaught);
    if (crashed !== undefined) throw new Error(`a server crashed: ${crashed.describe()}`);
  }

  async close(): Promise<void> {
    for (const server of this.servers) server.api[Symbol.dispose]();
    const children = this.servers.filter(({ runs }) => runs).map((server) => server.process);
    await Promise.all([...children, ...this.#callers].map((child) => child.kill()));
    rmSync(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
