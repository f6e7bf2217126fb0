// Servers to measure: idmint as it is shipped, and the floors it is compared with.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { GenerateIdRequest } from "@idmint/proto";
import { Api, type TagWish } from "../../src/fleet/api.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { until } from "../../src/fleet/until.ts";
import { BUILT_CLI } from "./build.ts";
import { cores } from "./cpus.ts";
import { type Load, type LoadResult, runLoad } from "./h2load.ts";
import { Subject } from "./process.ts";

/** Methods, as on the wire. */
export const GENERATE_ID = "/idmint.v1.IdService/GenerateId";
export const GENERATE_IDS = "/idmint.v1.IdService/GenerateIds";
export const ALLOCATE_SEGMENT = "/idmint.v1.IdService/AllocateSegment";

const bench = path.resolve(import.meta.dirname, "..");

/** A file of the benchmarks run as a process, unbuilt. */
export function script(file: string, ...args: readonly string[]): readonly string[] {
  return [process.execPath, "-C", "idmint-source", path.join(bench, file), ...args];
}

/** A server that answers calls, and what it used for them. */
export class Server implements AsyncDisposable {
  readonly subject: Subject;
  readonly address: string;
  readonly #cleanUp: () => void;

  constructor(subject: Subject, address: string, cleanUp: () => void = () => undefined) {
    this.subject = subject;
    this.address = address;
    this.#cleanUp = cleanUp;
  }

  /** Runs a load on it. `cpuUs`: the server's processor time, microseconds a call. */
  async load(load: Omit<Load, "address">): Promise<LoadResult & { readonly cpuUs: number }> {
    const before = this.subject.cpuSeconds;
    const result = await runLoad({ ...load, address: this.address });
    const cpuUs = ((this.subject.cpuSeconds - before) / result.answered) * 1e6;
    // A refusal is HTTP 200 too, without a message; an answer has at least a prefix of five bytes and some fields.
    if (result.failed > 0 || result.bytes < result.answered * MIN_ANSWER_BYTES) {
      throw new Error(`${this.subject.name} refused calls: ${JSON.stringify(result)}`);
    }
    return { ...result, cpuUs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.subject[Symbol.asyncDispose]();
    this.#cleanUp();
  }
}

/** The prefix of a message, and one field of it: an id that is not 0. */
const MIN_ANSWER_BYTES = 7;

/** A bare grpc-js server with the same messages: as it comes, or with both cures of its garbage collections. */
export async function startFloor(kind: "stock" | "cured"): Promise<Server> {
  const command = [...cores.server, ...script("floors/grpc-js.ts", kind)];
  const subject = new Subject(`the ${kind} floor`, command);
  const [, address = ""] = await subject.saying(/listening on ([\d.]+:\d+)\./);
  return new Server(subject, address);
}

/** A running idmint with an API client. */
export class Idmint extends Server {
  readonly api: Api;
  #made = 0;

  constructor(subject: Subject, address: string, cleanUp: () => void) {
    super(subject, address, cleanUp);
    this.api = new Api(address);
  }

  /** Makes a tag with a name of its own and answers the name. */
  async makeTag(wish: Omit<TagWish, "name"> = {}): Promise<string> {
    const name = `bench-${++this.#made}`;
    await this.api.createTag({ ...wish, name });
    return name;
  }

  /** Loads of a tag so far: each raises its version by one. */
  async loadsOf(tag: string): Promise<number> {
    return Number((await this.api.getTag(tag)).version);
  }

  /** Ids issued by the server so far. */
  async issuedIds(): Promise<number> {
    const status = this.api.nodes.getNodeStatus.bind(this.api.nodes);
    return Number((await this.api.send(status, {})).issuedIds);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.api[Symbol.dispose]();
    await super[Symbol.asyncDispose]();
  }
}

export interface IdmintOptions {
  /** Default: a fresh SQLite file, removed at the end. */
  readonly storeUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Default: `idmint serve`. */
  readonly command?: readonly string[];
}

/** `idmint serve` on a store that is migrated first, waiting for calls. */
export async function startIdmint(options: IdmintOptions = {}): Promise<Idmint> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-bench-"));
  const { storeUrl = `sqlite:${path.join(folder, "idmint.db")}`, command } = options;
  const grpcAddress = `127.0.0.1:${await freePort()}`;
  const env = {
    IDMINT_STORE_URL: storeUrl,
    IDMINT_GRPC_ADDRESS: grpcAddress,
    IDMINT_HTTP_ADDRESS: `127.0.0.1:${await freePort()}`,
    ...options.env,
  };
  const cleanUp = (): void => rmSync(folder, { recursive: true, force: true });
  await using migration = new Subject("idmint migrate", [process.execPath, BUILT_CLI, "migrate"], {
    env,
  });
  await migration.toEnd(30_000);
  const serve = command ?? [process.execPath, BUILT_CLI, "serve"];
  const subject = new Subject("idmint", [...cores.server, ...serve], {
    env,
    ipc: command !== undefined,
  });
  const idmint = new Idmint(subject, grpcAddress, cleanUp);
  try {
    await until("idmint serves", () => idmint.api.isServing(), { withinMs: 30_000 });
    return idmint;
  } catch (cause) {
    await idmint[Symbol.asyncDispose]();
    throw new Error(`idmint did not start:\n${subject.output}`, { cause });
  }
}

/** The message of a GenerateId call. */
export function generateIdMessage(tag: string): Uint8Array {
  return GenerateIdRequest.encode({ tag }).finish();
}
