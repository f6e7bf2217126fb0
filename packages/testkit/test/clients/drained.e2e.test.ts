// Two servers behind a balancer that asks them each second whether they are ready: one is drained and one is stopped while callers
// of several libraries call all the time. Nobody notices who makes a call once again that was refused.
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { createIdClient } from "@idmint/client";
import { GenerateIdRequest, NodeState } from "@idmint/proto";
import { afterAll, beforeAll, describe, expect, onTestFailed, onTestFinished, test } from "vitest";
import { Balancer } from "../../src/balancer.ts";
import type { Caller, Seen } from "../../src/callers/caller.ts";
import { grpcJs } from "../../src/callers/grpc-js.ts";
import { PROGRAMS } from "../../src/callers/programs.ts";
import { DOORS, testDoor } from "../../src/doors.ts";
import { Api } from "../../src/fleet/api.ts";
import { Child, killChildren } from "../../src/fleet/child.ts";
import { CLI } from "../../src/program.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { until } from "../../src/fleet/until.ts";
import { isLong, sqliteFile } from "../fleet-support.ts";
import { authority, certFile, keyFile } from "./server.ts";

/** Two periods of the balancer's probes, and what a busy machine adds to them. */
const DELAY_MS = 3_000;
const FLIGHT_MS = 30_000;
/** Callers of each library that share connections, and connections. */
const CALLERS = 5;
const RUNS = 3;
const STEP = {
  method: "idmint.v1.IdService/GenerateId",
  message: GenerateIdRequest.encode({ tag: "demo", name: "" }).finish(),
  calls: CALLERS,
  forMs: FLIGHT_MS,
  retries: 1,
};
const BUILD_MS = 1_200_000;
const PATIENT = { withinMs: 60_000 };

afterAll(killChildren);

/** A server in one process, which operators reach without the balancer. */
class Server {
  readonly name: string;
  readonly port: number;
  readonly readyz: string;
  readonly child: Child;
  readonly api: Api;

  private constructor(name: string, port: number, readyz: string, child: Child, ca?: string) {
    this.name = name;
    this.port = port;
    this.readyz = readyz;
    this.child = child;
    this.api = new Api(`localhost:${port}`, ca);
  }

  static async start(
    name: string,
    isSecure: boolean,
    env: Readonly<Record<string, string>>,
  ): Promise<Server> {
    const [port, http] = [await freePort(), await freePort()];
    const tls = { IDMINT_TLS_CERT_FILE: certFile, IDMINT_TLS_KEY_FILE: keyFile };
    const child = new Child(CLI, ["start-dev", "--json"], {
      name,
      env: {
        IDMINT_GRPC_ADDRESS: `127.0.0.1:${port}`,
        IDMINT_HTTP_ADDRESS: `127.0.0.1:${http}`,
        IDMINT_INSTANCE: name,
        IDMINT_DRAIN_DELAY: `${DELAY_MS}ms`,
        ...(isSecure ? tls : {}),
        ...env,
      },
    });
    onTestFailed(() => console.log(child.describe()));
    await child.waitForOutput("grpcAddress");
    const ca = isSecure ? readFileSync(authority, "utf8") : undefined;
    const server = new Server(name, port, `http://127.0.0.1:${http}/readyz`, child, ca);
    onTestFinished(async () => {
      server.api[Symbol.dispose]();
      await child.kill();
    });
    return server;
  }

  async drain(): Promise<void> {
    const { nodes } = this.api;
    await this.api.send(
      nodes.drainNode.bind(nodes),
      { node: this.name, validateOnly: false },
      10_000,
    );
  }

  async undrain(): Promise<void> {
    const { nodes } = this.api;
    await this.api.send(
      nodes.undrainNode.bind(nodes),
      { node: this.name, validateOnly: false },
      10_000,
    );
  }

  /** Calls that it refused since its start, by its metrics. */
  async refused(): Promise<number> {
    const text = await (await fetch(this.readyz.replace("/readyz", "/metrics"))).text();
    const lines = text.split("\n").filter((line) => /_refus\w*\{.*DRAINING/.test(line));
    return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }
}

/** Callers of the SDK, which answer how many ids they were given; they reject when one was refused. */
async function flySdk(port: number, isSecure: boolean, endsAt: number): Promise<number> {
  const client = createIdClient({
    address: `localhost:${port}`,
    min: 1,
    max: 1,
    ...(isSecure ? { tls: { ca: readFileSync(authority, "utf8"), serverName: "localhost" } } : {}),
  });
  onTestFinished(() => client.close());
  const tag = client.tag("demo");
  let count = 0;
  while (Date.now() < endsAt) {
    await tag.next();
    count++;
    await pause(10);
  }
  return count;
}

async function fly(callers: readonly Caller[], isSecure: boolean, env: Record<string, string>) {
  const storeUrl = `sqlite:${await sqliteFile()}`;
  const its = { IDMINT_STORE_URL: storeUrl, ...env };
  // One after the other, since the first makes the store.
  const one = await Server.start("one", isSecure, its);
  const two = await Server.start("two", isSecure, its);
  const balancer = await Balancer.start([one, two]);
  onTestFinished(() => balancer.close());
  const target = {
    address: `localhost:${balancer.port}`,
    ca: isSecure ? authority : undefined,
  };
  const runs = callers.flatMap((caller) =>
    Array.from({ length: RUNS }, () => ({ name: caller.name, ...caller.begin(target, [STEP]) })),
  );
  await Promise.all(runs.map((run) => run.begun(1)));
  const endsAt = Date.now() + FLIGHT_MS;
  const sdk = flySdk(balancer.port, isSecure, endsAt);
  await pause(2_000);

  await one.drain();
  await until("the balancer has noticed", () => !balancer.isReady(0), PATIENT);
  const before = balancer.accepted(0);
  await pause(DELAY_MS + 1_000);
  // Callers are gone, and nobody came.
  expect(balancer.accepted(0)).toBe(before);
  const refused = await one.refused();
  // Whoever is an operator is answered.
  const { nodes } = one.api;
  const { state } = await one.api.send(nodes.getNodeStatus.bind(nodes), {});
  expect(state).toBe(NodeState.DRAINING);
  await one.undrain();
  await until("the balancer has noticed", () => balancer.isReady(0), PATIENT);

  two.child.signal("SIGTERM");
  expect((await two.child.waitForEnd(60_000)).code).toBe(0);
  await pause(1_000);
  expect(Date.now(), "the machine is too slow for the flight").toBeLessThan(endsAt);
  const seen = await Promise.all(
    runs.map(async ({ name, seen: all }) => [name, await all] as const),
  );
  return {
    seen: seen.map(([name, [its_]]) => ({ name, ...(its_ as Seen) })),
    sdk: await sdk,
    refused,
  };
}

const tried = isLong
  ? DOORS.flatMap((door) => [false, true].map((isSecure) => ({ door, isSecure })))
  : [{ door: testDoor(), isSecure: false }];

describe("two servers behind a balancer", () => {
  const callers: Caller[] = [grpcJs];

  beforeAll(() => {
    if (!isLong) return;
    // tonic's caller makes no call again.
    for (const [name, build] of PROGRAMS) if (name !== "tonic") callers.push(build());
  }, BUILD_MS);

  test.each(tried)(
    "one is drained and one is stopped, and no caller notices: $door, TLS: $isSecure",
    { timeout: 300_000 },
    async ({ door, isSecure }) => {
      const { seen, sdk, refused } = await fly(callers, isSecure, { IDMINT_GRPC_DOOR: door });
      expect(sdk).toBeGreaterThan(0);
      for (const { name, ends, texts, answers } of seen) {
        expect(ends, `${name}: ${texts.join()}`).toEqual({ OK: answers.length });
        expect(answers.length, name).toBeGreaterThan(0);
      }
      const figures = seen.map(({ name, answers, retried }) => [name, answers.length, retried]);
      console.log(door, isSecure ? "TLS" : "plain", figures, { sdk, refused });
    },
  );
});
