// A server for callers of all kinds, and what a test does to it.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { credentials, Metadata } from "@grpc/grpc-js";
import { type ListFiguresResponse, SegmentKind, SequenceKind, Tag } from "@idmint/proto";
import { NodeServiceClient, TagServiceClient } from "@idmint/proto/grpc-js";
import pg from "pg";
import { afterFile } from "../../src/after-file.ts";
import type { Target } from "../../src/callers/caller.ts";
import { selfSigned, signedBy } from "../../src/certificate.ts";
import { Child } from "../../src/fleet/child.ts";
import { CLI } from "../../src/program.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { until } from "../../src/fleet/until.ts";
import { removeAfterwards } from "../../src/postgres-files.ts";
import { TestPostgres } from "../../src/postgres.ts";

const folder = mkdtempSync(path.join(tmpdir(), "idmint-clients-"));
removeAfterwards(folder);
const AUTHORITY = "idmint tests";
const ca = selfSigned(AUTHORITY);
const { cert, key } = signedBy(ca, "localhost", AUTHORITY);
/** Files of the authority of all servers here, and of their certificate and its key. */
export const authority: string = path.join(folder, "ca.crt");
export const certFile: string = path.join(folder, "tls.crt");
export const keyFile: string = path.join(folder, "tls.key");
writeFileSync(authority, ca.cert);
writeFileSync(certFile, cert);
writeFileSync(keyFile, key, { mode: 0o400 });

let postgres: Promise<TestPostgres> | undefined;

async function ofThisFile(): Promise<TestPostgres> {
  const server = await TestPostgres.start({ durable: true });
  afterFile(async () => {
    postgres = undefined;
    await server.close();
  });
  return server;
}

/** A folder that goes with the process. */
export function newFolder(): string {
  return mkdtempSync(path.join(folder, "own-"));
}

type Done<T> = (error: Error | null, answer: T) => void;

function answered<T>(send: (done: Done<T>) => unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    send((error, answer) => {
      if (error === null) resolve(answer);
      else reject(error);
    });
  });
}

/** One process with a tag `demo`, in plain text or with TLS. Close it. */
export class ClientsServer {
  readonly child: Child;
  readonly port: number;
  readonly isSecure: boolean;
  readonly #storeUrl: string;
  readonly #tags: TagServiceClient;
  readonly #nodes: NodeServiceClient;

  private constructor(child: Child, port: number, isSecure: boolean, storeUrl: string) {
    this.child = child;
    this.port = port;
    this.isSecure = isSecure;
    this.#storeUrl = storeUrl;
    const channel = isSecure
      ? credentials.createSsl(Buffer.from(ca.cert))
      : credentials.createInsecure();
    this.#tags = new TagServiceClient(`localhost:${port}`, channel);
    this.#nodes = new NodeServiceClient(`localhost:${port}`, channel);
  }

  /** `env`: further options of the server. */
  static async start(
    isSecure: boolean,
    env: Readonly<Record<string, string>> = {},
  ): Promise<ClientsServer> {
    const port = await freePort();
    postgres ??= ofThisFile();
    const { url: storeUrl } = await (await postgres).createDatabase();
    const tls = { IDMINT_TLS_CERT_FILE: certFile, IDMINT_TLS_KEY_FILE: keyFile };
    const child = new Child(CLI, ["start-dev", "--json"], {
      name: `server ${isSecure ? "with TLS" : "in plain text"}`,
      cwd: newFolder(),
      env: {
        IDMINT_STORE_URL: storeUrl,
        IDMINT_GRPC_ADDRESS: `127.0.0.1:${port}`,
        IDMINT_HTTP_ADDRESS: "none",
        IDMINT_STORE_TIMEOUT: "30s",
        IDMINT_LOG_LEVEL: "warn",
        ...(isSecure ? tls : {}),
        ...env,
      },
    });
    await child.waitForOutput("grpcAddress");
    return new ClientsServer(child, port, isSecure, storeUrl);
  }

  /** The server, or somebody in front of it who listens on that port. */
  target(port: number = this.port): Target {
    return { address: `localhost:${port}`, ca: this.isSecure ? authority : undefined };
  }

  async createTag(name: string): Promise<void> {
    const kind = { $case: "segment", value: SegmentKind.create() } as const;
    await this.#create({ ...Tag.create(), name, kind });
  }

  /** Each of its ids takes a round trip to the store. */
  async createSequence(name: string): Promise<void> {
    const kind = { $case: "sequence", value: SequenceKind.create() } as const;
    await this.#create({ ...Tag.create(), name, kind });
  }

  /** Until it is released, calls wait for ids of a sequence. */
  async lock(tag: string): Promise<{ readonly release: () => Promise<void> }> {
    const session = new pg.Client({ connectionString: this.#storeUrl });
    await session.connect();
    await session.query("BEGIN");
    await session.query("SELECT FROM idmint.tag WHERE name = $1 FOR UPDATE", [tag]);
    return { release: () => session.end() };
  }

  /** Waits until exactly so many calls wait for ids of a tag. */
  async untilWaiting(tag: string, count: number): Promise<void> {
    const request = { tag, seconds: 1, thisServer: true };
    await until(
      `${count} calls wait`,
      async () => {
        const { nodes } = await answered<ListFiguresResponse>((done) =>
          this.#nodes.listFigures(request, new Metadata(), { deadline: Date.now() + 5_000 }, done),
        );
        return nodes[0]?.tagFigures?.waitingCalls === count;
      },
      { withinMs: 60_000 },
    );
  }

  async close(): Promise<void> {
    this.#tags.close();
    this.#nodes.close();
    await this.child.kill();
  }

  async #create(tag: Tag): Promise<void> {
    const request = { tag, validateOnly: false };
    await answered((done) => this.#tags.createTag(request, done));
  }
}
