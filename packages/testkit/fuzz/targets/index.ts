import type { Target } from "../target.ts";
import { type Planted, startWorld } from "../world.ts";
import { accessTarget } from "./access.ts";
import { cliTarget } from "./cli.ts";
import { configTarget } from "./config.ts";
import { formatTarget } from "./format.ts";
import { grpcTarget } from "./grpc.ts";
import { hpackTarget } from "./hpack.ts";
import { http2Target } from "./http2.ts";
import { httpTarget } from "./http.ts";

/** Makes a target, into which a fault may be planted. */
type Make = (planted?: Planted) => Promise<Target> | Target;

export const TARGETS = {
  "grpc-fast": async (planted) => grpcTarget(await startWorld("fast", planted)),
  "grpc-js": async (planted) => grpcTarget(await startWorld("grpc-js", planted)),
  http: async (planted) => httpTarget(await startWorld("fast", planted)),
  "http2-fast": async (planted) => http2Target(await startWorld("fast", planted), Infinity),
  // Of node:http2 many wait until they are old.
  "http2-grpc-js": async (planted) => http2Target(await startWorld("grpc-js", planted), 300),
  hpack: hpackTarget,
  cli: async (planted) => cliTarget(await startWorld("fast", planted)),
  config: configTarget,
  access: accessTarget,
  format: formatTarget,
} as const satisfies Record<string, Make>;

export type TargetName = keyof typeof TARGETS;
