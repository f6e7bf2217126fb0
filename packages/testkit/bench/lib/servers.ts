// Servers to measure: idmint as it is shipped, and the floors it is compared with.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { GenerateIdRequest, type GetNodeStatusResponse, type SequenceKind } from "@idmint/proto";
import { selfSigned } from "../../src/certificate.ts";
import { Api, type TagOptions } from "../../src/fleet/api.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { until } from "../../src/fleet/until.ts";
import { BUILT_CLI, builtGoFloor, builtRustFloor, builtScript } from "./build.ts";
import { cores } from "./cpus.ts";
import { type Load, type LoadResult, runLoad } from "./h2load.ts";
import { Subject } from "./process.ts";

/** Methods, as on the wire. */
export const GENERATE_ID = "/idmint.v1.IdService/GenerateId";
export const GENERATE_IDS = "/idmint.v1.IdService/GenerateIds";
export const ALLOCATE_SEGMENT = "/idmint.v1.IdService/AllocateSegment";

/** A file of the benchmarks run as a process, with the packages as they are published: built. */
export function script(file: string, ...args: readonly string[]): readonly string[] {
  return [process.execPath, builtScript(file), ...args];
}

/** A server that answers calls, and what it used for them. */
export class Server implements AsyncDisposable {
  readonly subject: Subject;
  readonly address: string;
  /** Whether it is called through TLS. */
  readonly isSecure: boolean = false;
  readonly #cleanUp: () => void;

  constructor(subject: Subject, address: string, cleanUp: () => void = () => undefined) {
    this.subject = subject;
    this.address = address;
    this.#cleanUp = cleanUp;
  }

  /** Runs a load on it. `cpuUs`: the server's processor time, microseconds a call. */
  async load(load: Omit<Load, "address">): Promise<LoadResult & { readonly cpuUs: number }> {
    const result = await this.loadAnyway(load);
    // A refusal is HTTP 200 too, without a message; an answer has at least a prefix of five bytes and some fields.
    if (result.failed > 0 || result.bytes < result.answered * MIN_ANSWER_BYTES) {
      throw new Error(`${this.subject.name} refused calls: ${JSON.stringify(result)}`);
    }
    return result;
  }

  /** Runs a load on it, refused or not. */
  loadAnyway(load: Omit<Load, "address">): Promise<LoadResult & { readonly cpuUs: number }> {
    const { isSecure } = this;
    return this.whileItRuns(() => runLoad({ isSecure, ...load, address: this.address }));
  }

  /** Runs anything that puts a load on it. `cpuUs`: the server's processor time, microseconds an answer. */
  async whileItRuns<Result extends { readonly answered: number }>(
    run: () => Promise<Result>,
  ): Promise<Result & { readonly cpuUs: number }> {
    const before = this.subject.cpuSeconds;
    const result = await run();
    return { ...result, cpuUs: ((this.subject.cpuSeconds - before) / result.answered) * 1e6 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.subject[Symbol.asyncDispose]();
    this.#cleanUp();
  }
}

/** The prefix of a message, and one field of it: an id that is not 0. */
const MIN_ANSWER_BYTES = 7;

/** A bare grpc-js server with the same messages, and with the flags of V8 that idmint sets. */
export async function startFloor(): Promise<Server> {
  return startBareServer("bare grpc-js", script("floors/grpc-js.ts"));
}

/** A bare grpc-go server that answers GenerateId only; undefined on a machine without Go. */
export async function startGoFloor(): Promise<Server | undefined> {
  const program = builtGoFloor();
  return program === undefined ? undefined : startBareServer("grpc-go", [program]);
}

/** A bare tonic server of one thread that answers GenerateId only; undefined on a machine without Rust. */
export async function startRustFloor(): Promise<Server | undefined> {
  const program = builtRustFloor();
  return program === undefined ? undefined : startBareServer("tonic", [program]);
}

async function startBareServer(name: string, command: readonly string[]): Promise<Server> {
  const subject = new Subject(name, [...cores.server, ...command]);
  const [, address = ""] = await subject.saying(/listening on ([\d.]+:\d+)\./);
  return new Server(subject, address);
}

/** A running idmint with an API client. */
export class Idmint extends Server {
  readonly api: Api;
  readonly httpAddress: string;
  override readonly isSecure: boolean;
  /** One for each process that answers calls: whoever asks about the process asks all of them. */
  readonly #nodes: Api[];
  readonly #ca: string | undefined;
  #made = 0;

  constructor(
    subject: Subject,
    { grpcAddress, httpAddress }: { readonly grpcAddress: string; readonly httpAddress: string },
    ca: string | undefined,
    cleanUp: () => void,
  ) {
    super(subject, grpcAddress, cleanUp);
    this.#ca = ca;
    this.isSecure = ca !== undefined;
    this.api = new Api(grpcAddress, ca);
    this.httpAddress = httpAddress;
    this.#nodes = [this.api];
  }

  /**
   * Waits until so many processes answer calls, and makes sure that each has the flags of V8 that it sets: what
   * is measured of a server without them is not what users get.
   */
  async meet(processes: number): Promise<void> {
    await until("idmint serves", () => this.api.isServing(), START);
    const known = new Set([(await statusOf(this.api)).nodeId]);
    while (known.size < processes) {
      await until(`process ${known.size + 1} answers`, () => this.#meetAnother(known), START);
    }
    assertFlags(this.subject.output);
  }

  /** Each connection goes to a process with the fewest, so another one is met as soon as it serves. */
  async #meetAnother(known: Set<string>): Promise<boolean> {
    const api = new Api(this.address, this.#ca);
    const { nodeId } = await statusOf(api);
    if (known.has(nodeId)) {
      api[Symbol.dispose]();
      return false;
    }
    known.add(nodeId);
    this.#nodes.push(api);
    return true;
  }

  /** Makes a tag with a name of its own and answers the name. */
  async makeTag(options: Omit<TagOptions, "name"> = {}): Promise<string> {
    const name = `bench-${++this.#made}`;
    await this.api.createTag({ ...options, name });
    return name;
  }

  /** Makes a sequence with a name of its own and answers the name. */
  async makeSequence(settings: Partial<SequenceKind> = {}): Promise<string> {
    const name = `bench-${++this.#made}`;
    await this.api.createSequence(name, settings);
    return name;
  }

  /** Loads of a tag so far: each raises its version by one. */
  async loadsOf(tag: string): Promise<number> {
    return Number((await this.api.getTag(tag)).version);
  }

  /** Ids issued so far, by all processes together. */
  async issuedIds(): Promise<number> {
    const statuses = await Promise.all(this.#nodes.map(statusOf));
    return statuses.reduce((sum, { issuedIds }) => sum + Number(issuedIds), 0);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (const api of this.#nodes) api[Symbol.dispose]();
    await super[Symbol.asyncDispose]();
  }
}

const START = { withinMs: 30_000 };

function statusOf(api: Api): Promise<GetNodeStatusResponse> {
  return api.send(api.nodes.getNodeStatus.bind(api.nodes), {});
}

/** Throws when a process says that its garbage collections may be slow. */
export function assertFlags(output: string): void {
  if (!output.includes("garbage collections may be slow")) return;
  throw new Error(`an idmint that is slower than it should be:\n${output}`);
}

export interface IdmintOptions {
  /** Default: a fresh SQLite file, removed at the end. */
  readonly storeUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Default: `idmint serve`. */
  readonly command?: readonly string[];
  /** Processes behind the address; `idmint serve` only. Default: 1. */
  readonly processes?: number;
  /** Whether it stays off the generator's core. Default: true. */
  readonly isPinned?: boolean;
  /** Whether its gRPC port uses TLS, with a certificate of its own. Default: false. */
  readonly isSecure?: boolean;
}

/** `idmint serve` on a store that is migrated first, waiting for calls. */
export async function startIdmint(options: IdmintOptions = {}): Promise<Idmint> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-bench-"));
  const { storeUrl = `sqlite:${path.join(folder, "idmint.db")}`, command } = options;
  const { processes = 1, isPinned = true, isSecure = false } = options;
  const grpcAddress = `127.0.0.1:${await freePort()}`;
  const httpAddress = `127.0.0.1:${await freePort()}`;
  const own = selfSigned("localhost");
  const env = {
    IDMINT_STORE_URL: storeUrl,
    IDMINT_GRPC_ADDRESS: grpcAddress,
    IDMINT_HTTP_ADDRESS: httpAddress,
    IDMINT_DRAIN_DELAY: "0s",
    ...(isSecure ? tlsFilesIn(folder, own) : {}),
    ...options.env,
  };
  const cleanUp = (): void => rmSync(folder, { recursive: true, force: true });
  await using migration = new Subject("idmint migrate", [process.execPath, BUILT_CLI, "migrate"], {
    env,
  });
  await migration.toEnd(30_000);
  const serve = [process.execPath, BUILT_CLI, "serve", "--processes", String(processes)];
  const pin = isPinned ? cores.server : [];
  const subject = new Subject("idmint", [...pin, ...(command ?? serve)], {
    env,
    ipc: command !== undefined,
  });
  const ca = isSecure ? own.cert : undefined;
  const idmint = new Idmint(subject, { grpcAddress, httpAddress }, ca, cleanUp);
  try {
    await idmint.meet(processes);
    return idmint;
  } catch (cause) {
    await idmint[Symbol.asyncDispose]();
    throw new Error(`idmint did not start:\n${subject.output}`, { cause });
  }
}

function tlsFilesIn(
  folder: string,
  { cert, key }: ReturnType<typeof selfSigned>,
): Readonly<Record<string, string>> {
  const [certFile, keyFile] = [path.join(folder, "own.crt"), path.join(folder, "own.key")];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key, { mode: 0o600 });
  return { IDMINT_TLS_CERT_FILE: certFile, IDMINT_TLS_KEY_FILE: keyFile };
}

/** The message of a GenerateId call. */
export function generateIdMessage(tag: string): Uint8Array {
  return GenerateIdRequest.encode({ tag, name: "" }).finish();
}
