import { afterAll, beforeAll, expect } from "vitest";
import { cli, type Served, serve, temporaryFolder } from "./spawn.ts";
import type { CommandResult } from "./support.ts";

/** `start-dev` as a process of its own, for all tests of a file. */
export interface DevServer {
  /** Known once the tests run. */
  readonly grpcAddress: string;
  readonly httpAddress: string;
  /** Runs the CLI against it, as a process. */
  readonly idmint: (...args: string[]) => Promise<CommandResult>;
  /** What a command prints; it must succeed and say nothing else. */
  readonly out: (...args: string[]) => Promise<string>;
  /** The JSON that a command prints; it must succeed and say nothing else. */
  readonly json: <T>(...args: string[]) => Promise<T>;
}

/** `prepare` puts files into the server's folder, and answers its environment. */
export function devServer(
  prepare: (folder: string) => Readonly<Record<string, string>> = () => ({}),
): DevServer {
  let server: Served | undefined;
  const { folder, remove } = temporaryFolder();
  beforeAll(async () => {
    server = await serve(["start-dev"], { cwd: folder, env: prepare(folder) });
  });
  afterAll(async () => {
    await server?.stop();
    remove();
  });
  const served = (): Served => {
    if (server === undefined) throw new Error("the server is not there before the tests run");
    return server;
  };
  const idmint = (...args: string[]): Promise<CommandResult> =>
    cli(args, { env: { IDMINT_ADDRESS: served().grpcAddress } });
  const out = async (...args: string[]): Promise<string> => {
    const { exitCode, out: printed, err } = await idmint(...args);
    expect([exitCode, err]).toEqual([0, ""]);
    return printed;
  };
  return {
    get grpcAddress() {
      return served().grpcAddress;
    },
    get httpAddress() {
      return served().httpAddress;
    },
    idmint,
    out,
    json: async <T>(...args: string[]) => JSON.parse(await out(...args, "--json")) as T,
  };
}
