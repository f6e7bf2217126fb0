// `idmint node …` on a running fleet: servers as processes of their own, on one store.
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { cli, serve, type Served, temporaryFolder } from "../spawn.ts";
import type { CommandResult } from "../support.ts";

interface ShownNode {
  readonly nodeId: string;
  readonly instance: string;
  readonly weight: number;
  readonly draining: boolean;
  readonly alive: boolean;
}

async function storeFlags(): Promise<readonly string[]> {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const flags = ["--store-url", `sqlite:${path.join(folder, "idmint.db")}`];
  const { exitCode, err } = await cli(["migrate", ...flags]);
  expect(exitCode, err).toBe(0);
  return flags;
}

async function served(flags: readonly string[], instance: string, ...more: string[]) {
  const server = await serve(["serve", ...flags, "--instance", instance, ...more]);
  onTestFinished(async () => {
    await server.stop();
  });
  const idmint = (...args: string[]): Promise<CommandResult> =>
    cli(args, { env: { IDMINT_ADDRESS: server.grpcAddress } });
  return { ...server, idmint };
}

async function readiness({ httpAddress }: Served): Promise<{ status: number; reason?: string }> {
  const answer = await fetch(`http://${httpAddress}/readyz`);
  return { status: answer.status, ...((await answer.json()) as object) };
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 30_000;
  while (!(await holds())) if (performance.now() > end) throw new Error("did not happen in time");
}

test("drain, weight and undrain act on a running fleet, and the last server asks", async () => {
  const flags = await storeFlags();
  const one = await served(flags, "one");
  const two = await served(flags, "two");
  expect((await one.idmint("tag", "create", "orders")).exitCode).toBe(0);
  const nodes = async (): Promise<readonly ShownNode[]> =>
    (JSON.parse((await one.idmint("node", "list", "--json")).out) as { nodes: ShownNode[] }).nodes;
  await until(async () => (await nodes()).length === 2);

  const dry = await one.idmint("node", "drain", "two", "--dry-run");
  expect([dry.exitCode, dry.err]).toEqual([0, "idmint: dry run, nothing was changed\n"]);
  expect(dry.out).toContain("alive, drained");
  expect((await nodes()).filter(({ draining }) => draining)).toEqual([]);

  const drained = await one.idmint("node", "drain", "two");
  expect([drained.exitCode, drained.err]).toEqual([0, ""]);
  expect(drained.out).toMatch(
    /^NODE +INSTANCE +STATE +WEIGHT +ADDRESS[\s\S]*two +alive, drained +100/,
  );
  const refused = await two.idmint("id", "next", "orders");
  expect([refused.exitCode, refused.out]).toEqual([4, ""]);
  expect(refused.err).toContain("an operator drained this server");
  expect(await readiness(two)).toMatchObject({
    status: 503,
    reason: "an operator drained this server; idmint node undrain two ends that",
  });
  expect(two.words()).toContain("an operator drained this server");
  expect((await one.idmint("id", "next", "orders")).out).toBe("1\n");

  const weighed = await one.idmint("node", "weight", "one", "7", "--json");
  expect((JSON.parse(weighed.out) as { nodes: ShownNode[] }).nodes).toMatchObject([
    { instance: "one", weight: 7 },
  ]);

  const last = await two.idmint("node", "drain", "one");
  expect([last.exitCode, last.out]).toEqual([2, ""]);
  expect(last.err).toContain(
    "--yes is required: this drains the last server that takes calls, and nobody gets an id, and is undone by: idmint node undrain one",
  );
  expect((await one.idmint("id", "next", "orders")).exitCode).toBe(0);
  expect((await two.idmint("node", "drain", "one", "--yes")).exitCode).toBe(0);
  expect((await one.idmint("id", "next", "orders")).exitCode).toBe(4);
  for (const name of ["one", "two"]) {
    expect((await two.idmint("node", "undrain", name)).exitCode).toBe(0);
  }
  expect((await two.idmint("id", "next", "orders")).exitCode).toBe(0);
  expect(await nodes()).toMatchObject(
    (await nodes()).map(({ instance }) => ({
      draining: false,
      weight: instance === "one" ? 7 : 100,
    })),
  );
});

test("bad names and weights are told, and nothing is changed", async () => {
  const flags = await storeFlags();
  const one = await served(flags, "one");
  for (const [args, says] of [
    [["drain", "nobody"], "must be a NODE or INSTANCE of the list; idmint node list shows them"],
    [["weight", "one", "1001"], "<weight> must be a whole number from 0 to 1000"],
    [["weight", "one", "-1"], "<weight> must be a whole number from 0 to 1000"],
    [["weight", "one"], "missing required argument 'weight'"],
    [["undrain"], "missing required argument 'node'"],
  ] as const) {
    const { exitCode, out, err } = await one.idmint("node", ...args);
    expect([exitCode, out]).toEqual([2, ""]);
    expect(err).toContain(says);
  }
});

test("all processes of a server are drained together, and take commands meanwhile", async () => {
  const flags = await storeFlags();
  const both = await served(flags, "both", "--processes", "2");
  expect((await both.idmint("tag", "create", "orders")).exitCode).toBe(0);
  await until(async () => (await both.idmint("node", "list")).out.includes("both/2"));
  const drained = await both.idmint("node", "drain", "both/2", "--yes", "--json");
  const { nodes } = JSON.parse(drained.out) as { nodes: ShownNode[] };
  expect(new Map(nodes.map(({ instance, draining }) => [instance, draining]))).toEqual(
    new Map([
      ["both/1", true],
      ["both/2", true],
    ]),
  );
  for (let at = 0; at < 3; at++) {
    expect((await both.idmint("id", "next", "orders")).exitCode).toBe(4);
  }
  await until(async () => (await readiness(both)).status === 503);
  expect(await readiness(both)).toMatchObject({
    state: "DRAINING",
    reason: "an operator drained this server; idmint node undrain both ends that",
  });
  expect((await both.idmint("node", "undrain", "both")).exitCode).toBe(0);
  expect((await both.idmint("id", "next", "orders")).exitCode).toBe(0);
  await until(async () => (await readiness(both)).status === 200);
});
