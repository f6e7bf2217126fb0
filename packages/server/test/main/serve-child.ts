// A whole server in one process, for tests that send it signals: prints its gRPC address. Its argument is the folder of
// its store. Calls for the tag `never` are never answered.
import path from "node:path";
import type { GenerateIdRequest } from "@idmint/proto";
import { startDev } from "../../src/main/dev.ts";
import { doorEnv } from "@idmint/testkit";
import { runUntilSignal } from "../../src/main/run.ts";

const folder = process.argv[2] ?? "";
const { server } = await startDev(
  {
    env: doorEnv(),
    flags: {
      "store-url": `sqlite:${path.join(folder, "idmint.db")}`,
      "grpc-address": "127.0.0.1:0",
      "http-address": "127.0.0.1:0",
      "log-level": "silent",
    },
  },
  {
    authorise: (_context, _method, request) =>
      (request as GenerateIdRequest).tag === "never"
        ? new Promise<void>(() => undefined)
        : undefined,
  },
);
console.log(server.grpcAddress);
process.exitCode = await runUntilSignal(server);
