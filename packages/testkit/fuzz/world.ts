// A server in this process, with tags of all kinds, and somebody beside who must notice nothing.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { inspect } from "node:util";
import { loadConfig } from "../../server/src/config/load.ts";
import { type ServerParts, startServer } from "../../server/src/main/app.ts";
import { makeStore } from "../../server/src/main/stores.ts";
import { Victim } from "./judge/victim.ts";

export type Door = "fast" | "grpc-js";

export interface World {
  readonly grpcAddress: string;
  readonly httpAddress: string;
  /** What went wrong that no caller was told of. */
  readonly faults: () => readonly string[];
  /** Around a call that may stop everybody: the victim may hear of it, and all may issue again afterwards. */
  readonly aroundStop: <T>(call: () => Promise<T>) => Promise<T>;
  readonly close: () => Promise<void>;
}

/** What faults are planted into. */
export interface Planted extends Pick<ServerParts, "authorise"> {
  readonly undo?: () => void;
}

const SEGMENT = { min: 10, max: 1_000 };
/** The tags of `TAGS` that there are, but for their names. */
const MADE: Readonly<Record<string, object>> = {
  // Of small segments, so that it goes to the store often.
  victim: { segment: { min: 50, max: 200 } },
  smuggled: { segment: {} },
  segment: { segment: SEGMENT },
  sequence: { sequence: {} },
  daily: { sequence: { period: "PERIOD_UNIT_DAY", timeZone: "UTC" } },
  snowflake: { snowflake: {} },
  uuid: { uuid: { version: 7 } },
  object: { objectId: {} },
  text: { segment: SEGMENT, format: { template: "A-{id:19}{luhn}" } },
  secret: { segment: SEGMENT, ceiling: "100000000000000", unguessable: { keyId: 1 } },
};

/** How long the victim may hear of a stop: its server reads the store once a second. */
const STOPPED_MS = 5_000;

export function waited(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

async function call(address: string, method: string, body: object): Promise<void> {
  const response = await fetch(`http://${address}/idmint.v1.${method}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.text();
  if (response.status !== 200) throw new Error(`${method}: ${answer}`);
}

export async function startWorld(door: Door, planted: Planted = {}): Promise<World> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-fuzz-"));
  const keyFile = path.join(folder, "key");
  writeFileSync(keyFile, "0123456789abcdef0123456789abcdef\n", { mode: 0o600 });
  const { env } = process;
  const config = loadConfig({
    defaults: {
      "store.url": env["IDMINT_STORE_URL"] ?? `sqlite:${path.join(folder, "idmint.db")}`,
      "redis.urls": env["IDMINT_REDIS_URLS"] ?? "",
      "grpc.door": door,
      "grpc.address": "127.0.0.1:0",
      "http.address": "127.0.0.1:0",
      "http.leaf": "true",
      "http.tinyid": "true",
      "unguessable.keys": `1=${keyFile}`,
      // Whoever is fuzzed makes tokens, too, and all others are to stay allowed.
      "access.anonymous": "all",
      "access.anonymous_tags": "*",
      "log.level": "silent",
      drain_delay: "0ms",
      drain_time: "500ms",
    },
  });
  const faults: string[] = [];
  await makeStore(config);
  const { authorise, undo } = planted;
  const server = await startServer(config, {
    ...(authorise === undefined ? {} : { authorise }),
    onEvent: (event) => {
      if (event.type !== "internal-error") return;
      faults.push(`internal-error at ${event.where}: ${inspect(event.cause)}`);
    },
  });
  const { grpcAddress, httpAddress } = server;
  for (const [name, kind] of Object.entries(MADE)) {
    await call(httpAddress, "TagService/CreateTag", { tag: { name, ...kind } });
  }
  let stoppedUntil = 0;
  const victim = new Victim(grpcAddress, "victim", () => performance.now() < stoppedUntil);
  victim.start();
  return {
    grpcAddress,
    httpAddress,
    faults: () => [...faults.splice(0), ...victim.faults.splice(0)],
    aroundStop: async (stop) => {
      stoppedUntil = Infinity;
      try {
        return await stop();
      } finally {
        await call(httpAddress, "NodeService/ResumeIssuing", {});
        stoppedUntil = performance.now() + STOPPED_MS;
      }
    },
    close: async () => {
      await victim.stop();
      await server.close();
      undo?.();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
