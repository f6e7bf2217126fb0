// Real servers on one SQLite file, in this process.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { credentials, type ServiceError } from "@grpc/grpc-js";
import { type AdvanceTagResponse, type GetTagResponse, Order, Tag } from "@idmint/proto";
import { TagServiceClient } from "@idmint/proto/grpc-js";
import { loadConfig, migrateStore, type RunningServer, startServer } from "@idmint/server";
import { serverEnv } from "@idmint/testkit";
import { fromServiceError } from "../src/index.ts";

export class RealFleet implements AsyncDisposable {
  readonly #folder: string;
  readonly #servers: RunningServer[] = [];
  #tags: TagServiceClient | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async start(count: number): Promise<RealFleet> {
    const fleet = new RealFleet(mkdtempSync(path.join(tmpdir(), "idmint-client-")));
    const store = { backend: "sqlite", path: fleet.#storePath, create: true } as const;
    await migrateStore({ ...store, timeoutMs: 3_000, allowUnsafe: [] }, { dryRun: false });
    for (let i = 0; i < count; i++) await fleet.startServer();
    return fleet;
  }

  get #storePath(): string {
    return path.join(this.#folder, "ids.db");
  }

  get addresses(): readonly string[] {
    return this.#servers.map(({ grpcAddress }) => grpcAddress);
  }

  /**
   * Starts one more server; at a given address where it shall take over from one that stopped, with further settings. Answers
   * its address.
   */
  async startServer(
    address = "127.0.0.1:0",
    more: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const env = {
      ...serverEnv(),
      IDMINT_GRPC_ADDRESS: address,
      IDMINT_HTTP_ADDRESS: "127.0.0.1:0",
      IDMINT_STORE_URL: `sqlite:${this.#storePath}`,
      IDMINT_LOG_LEVEL: "silent",
      IDMINT_DRAIN_TIME: "200ms",
      ...more,
    };
    const server = await startServer(loadConfig({ env }));
    this.#servers.push(server);
    return server.grpcAddress;
  }

  /** Stops the server at an address as SIGTERM does. */
  async stop(address: string): Promise<void> {
    const at = this.#servers.findIndex(({ grpcAddress }) => grpcAddress === address);
    const [server] = this.#servers.splice(at, 1);
    await server?.close();
  }

  async createTag(name: string, more: Partial<Tag> & { start?: bigint } = {}): Promise<void> {
    const { start = 0n, ...rest } = more;
    const segment = { start, min: 0, max: 0, holdFor: undefined, maxAge: undefined, tinyidStep: 0 };
    const kind = { $case: "segment", value: segment } as const;
    const tag = { ...Tag.create(), kind, order: Order.UNSPECIFIED, ...rest, name };
    await this.#send((tags, done) => tags.createTag({ tag, validateOnly: false }, done));
  }

  async deleteTag(name: string): Promise<void> {
    await this.#send((tags, done) => tags.deleteTag({ name, etag: "", validateOnly: false }, done));
  }

  advance(name: string, floor: bigint): Promise<AdvanceTagResponse> {
    const request = { name, floor, validateOnly: false, allowLargeRaise: false, etag: "" };
    return this.#send((tags, done) => tags.advanceTag(request, done));
  }

  async floorOf(name: string): Promise<bigint> {
    const { tag } = await this.#send<GetTagResponse>((tags, done) => tags.getTag({ name }, done));
    return tag?.floor ?? 0n;
  }

  async pause(name: string): Promise<void> {
    await this.#send((tags, done) => tags.pauseTag({ name, etag: "", validateOnly: false }, done));
  }

  async resume(name: string): Promise<void> {
    await this.#send((tags, done) => tags.resumeTag({ name, etag: "", validateOnly: false }, done));
  }

  #send<T>(
    call: (
      tags: TagServiceClient,
      done: (error: ServiceError | null, answer: T) => void,
    ) => unknown,
  ): Promise<T> {
    const address = this.addresses[0] ?? "";
    this.#tags ??= new TagServiceClient(address, credentials.createInsecure());
    const tags = this.#tags;
    return new Promise((resolve, reject) => {
      call(tags, (error, answer) => {
        if (error === null) resolve(answer);
        else reject(fromServiceError(error));
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#tags?.close();
    await Promise.all(this.#servers.map((server) => server.close()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
