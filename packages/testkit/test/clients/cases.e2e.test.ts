// Clients by several libraries of gRPC against a real server, in plain text and over TLS: each does all of `CASES`. The short form
// has grpc-js alone. TEST_DOOR says on which door of gRPC.
import { afterAll, beforeAll, describe, test } from "vitest";
import type { Caller } from "../../src/callers/caller.ts";
import { grpcJs } from "../../src/callers/grpc-js.ts";
import { PROGRAMS } from "../../src/callers/programs.ts";
import { killChildren } from "../../src/fleet/child.ts";
import { isLong } from "../fleet-support.ts";
import { CASES, type Front } from "./cases.ts";
import { envoy, nginx } from "./fronts.ts";
import { ClientsServer } from "./server.ts";

const BUILD_MS = 1_200_000;
const CASE_MS = 300_000;

afterAll(killChildren);

const libraries: readonly (readonly [string, () => Caller])[] = [
  ["grpc-js", () => grpcJs],
  ...(isLong ? PROGRAMS : []),
];

const FRONTS: readonly (readonly [string, Front])[] = [
  ["nginx", nginx],
  ["Envoy", envoy],
];

describe.each([
  ["in plain text", false],
  ["over TLS", true],
] as const)("%s", (_, isSecure) => {
  let server: ClientsServer;

  beforeAll(async () => {
    server = await ClientsServer.start(isSecure);
    return () => server.close();
  });

  describe.runIf(isLong).each(FRONTS)("grpc-js through %s", (_name, front) => {
    test.each(CASES.filter(({ isDirect }) => isDirect !== true))(
      "$name",
      { timeout: CASE_MS },
      ({ run }) => run({ caller: grpcJs, isSecure, server, front }),
    );
  });

  describe.each(libraries)("%s", (_name, build) => {
    let caller: Caller;

    beforeAll(() => {
      caller = build();
    }, BUILD_MS);

    const here = isSecure ? "TLS" : "plain";
    test.each(CASES.filter(({ short = here }) => isLong || short === here))(
      "$name",
      { timeout: CASE_MS },
      ({ run }) => run({ caller, isSecure, server }),
    );
  });
});
