// What a real fleet on PostgreSQL counts, as one of its servers tells it: whole, and with the name of whoever is silent.
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import {
  GenerateIdsRequest,
  type ListFiguresRequest,
  type ListFiguresResponse,
  type NodeFigures,
  NodeState,
  SegmentKind,
  SilenceReason,
  Tag,
} from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { Api } from "../../src/fleet/api.ts";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { ownPostgres, startFleet } from "../fleet-support.ts";

const SECRET = "0123456789abcdefghijklmnopqrstuv0123456789a";
const TOKENS = { ops: "00000000000000a1", caller: "00000000000000a2", viewer: "00000000000000a3" };
type Name = keyof typeof TOKENS;
const RIGHTS: Readonly<Record<Name, string>> = {
  ops: 'admin: ["*"]\n    issue: ["*"]',
  caller: 'issue: ["orders"]',
  viewer: 'observe: ["orders"]',
};

const tokenOf = (name: Name): string => `idm_${TOKENS[name]}_${SECRET}`;

/** The file of principals of servers that know these. */
function accessFile(...names: readonly Name[]): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-access-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const sha256 = createHash("sha256").update(SECRET).digest("hex");
  const principals = names.map(
    (name) =>
      `  ${name}:\n    ${RIGHTS[name]}\n    tokens:\n      - id: "${TOKENS[name]}"\n        sha256: ${sha256}\n        expires: "2100-01-01T00:00:00Z"\n`,
  );
  const file = path.join(folder, "access.yaml");
  writeFileSync(file, `principals:\n${principals.join("")}`);
  return file;
}

type Unary<Request, Answer> = (
  request: Request,
  metadata: Metadata,
  options: { readonly deadline: number },
  done: (error: ServiceError | null, answer: Answer) => void,
) => unknown;

/** A call by one of those who have a token. */
function send<Request, Answer>(
  name: Name,
  method: Unary<Request, Answer>,
  request: Request,
): Promise<Answer> {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${tokenOf(name)}`);
  return new Promise((resolve, reject) => {
    method(request, metadata, { deadline: Date.now() + 20_000 }, (error, answer) => {
      if (error === null) resolve(answer);
      else reject(error);
    });
  });
}

function figures(
  { api: { nodes } }: FleetServer,
  request: Partial<ListFiguresRequest> = {},
  name: Name = "ops",
): Promise<ListFiguresResponse> {
  const wanted = { tag: "", seconds: 900, thisServer: false, ...request };
  return send(name, nodes.listFigures.bind(nodes), wanted);
}

/** Takes ids over a connection of its own, which goes to the process that has the fewest. */
async function mint({ address }: FleetServer, calls: number, count: number): Promise<void> {
  using api = new Api(address);
  const request = { tag: "orders", count, returnAsSegments: true };
  for (let at = 0; at < calls; at++) {
    await send("caller", api.ids.generateIds.bind(api.ids), GenerateIdsRequest.create(request));
  }
}

const sum = (numbers: readonly (bigint | number)[]): number =>
  numbers.reduce<number>((total, each) => total + Number(each), 0);
const issuedBy = ({ runs }: NodeFigures): number => sum(runs.flatMap((run) => run.issuedIds));
const issuedOf = ({ tagFigures }: NodeFigures): number =>
  sum(tagFigures?.runs.flatMap((run) => run.issuedIds) ?? []);

/** Why each is silent, by its name. */
const silences = ({ silentNodes }: ListFiguresResponse): Record<string, SilenceReason> =>
  Object.fromEntries(silentNodes.map(({ instance, reason }) => [instance, reason]));

/** One of the processes behind the address of a server. */
function pidOf({ process }: FleetServer, number: number): number {
  const lines = process.stderr.split("\n").filter((line) => line.includes('"msg":"serving"'));
  const all = lines.map((line) => JSON.parse(line) as { process?: number; pid: number });
  const found = all.find((each) => each.process === number);
  if (found === undefined) throw new Error(`no process ${number}: ${process.stderr}`);
  return found.pid;
}

/** Stops a process, until the end of the test at the latest. */
function freeze(pid: number): void {
  onTestFinished(() => {
    try {
      process.kill(pid, "SIGCONT");
    } catch {
      // It has ended.
    }
  });
  process.kill(pid, "SIGSTOP");
}

/** Three servers: one, one of two processes in another zone, and one that knows none of the callers of the others. */
async function startAll(): Promise<Fleet> {
  const postgres = await ownPostgres();
  const { url: storeUrl } = await postgres.createDatabase();
  const known = accessFile("ops", "caller", "viewer");
  return startFleet({
    servers: 3,
    storeUrl,
    env: { IDMINT_LOG_FORMAT: "json" },
    envOf: [
      { IDMINT_ACCESS_FILE: known, IDMINT_NODE_ZONE: "a", IDMINT_INSTANCE: "first" },
      {
        IDMINT_ACCESS_FILE: known,
        IDMINT_NODE_ZONE: "b",
        IDMINT_INSTANCE: "second",
        IDMINT_PROCESSES: "2",
      },
      { IDMINT_ACCESS_FILE: accessFile("caller"), IDMINT_NODE_ZONE: "a", IDMINT_INSTANCE: "third" },
    ],
  });
}

test("a fleet's figures are whole, and whoever is silent is named", async () => {
  const fleet = await startAll();
  const [first, second, third] = fleet.servers as [FleetServer, FleetServer, FleetServer];
  const { tags, nodes } = first.api;
  await send("ops", tags.createTag.bind(tags), {
    tag: {
      ...Tag.create(),
      name: "orders",
      kind: { $case: "segment", value: SegmentKind.create() },
    },
    validateOnly: false,
  });
  const known = async (name?: Name, request?: Partial<ListFiguresRequest>) => {
    const answer = await figures(first, request, name);
    return answer.nodes.length === 3 ? answer : undefined;
  };
  await until("all processes are known", () => known());

  // A tag is counted from when it is first asked for.
  await figures(first, { tag: "orders" }, "viewer");
  await mint(first, 5, 1_000);
  await Promise.all(Array.from({ length: 4 }, () => mint(second, 3, 100)));
  const minted = 5 * 1_000 + 4 * 3 * 100;
  const whole = await until("all ids are told", async () => {
    const answer = await known();
    return answer !== undefined && sum(answer.nodes.map(issuedBy)) === minted ? answer : undefined;
  });
  const byName = new Map(whole.nodes.map((node) => [node.instance, node]));
  const zones = Object.fromEntries([...byName].map(([name, { zone }]) => [name, zone]));
  expect(zones).toEqual({ first: "a", "second/1": "b", "second/2": "b" });
  const issued = (name: string): number => issuedBy(byName.get(name)!);
  expect([issued("first"), issued("second/1") + issued("second/2")]).toEqual([5_000, 1_200]);
  for (const { status: its, latencyP50Micros, storeOffsetMillis } of whole.nodes) {
    expect(its?.state).toBe(NodeState.SERVING);
    expect(latencyP50Micros).toBeGreaterThan(0);
    expect(storeOffsetMillis).toBeDefined();
  }
  const isRefused = async (): Promise<boolean> =>
    silences(await figures(first))["third"] === SilenceReason.REFUSED;
  await until("the third server, which knows other callers, refuses this one", isRefused);

  const ofTag = await until("the tag is told", async () => {
    const answer = await known("viewer", { tag: "orders" });
    return sum(answer?.nodes.map(issuedOf) ?? []) === minted ? answer : undefined;
  });
  expect(ofTag.nodes.every(({ status: its, runs }) => its === undefined && runs.length === 0)).toBe(
    true,
  );
  expect(ofTag.nodes.map(({ tagFigures }) => tagFigures!.readyIds > 0n)).toEqual([
    true,
    true,
    true,
  ]);

  // Rights are those of the tag, and of all tags for servers.
  const denied = { code: status.PERMISSION_DENIED };
  await expect(figures(first, {}, "viewer")).rejects.toMatchObject(denied);
  await expect(figures(first, { tag: "other" }, "viewer")).rejects.toMatchObject(denied);
  await expect(figures(first, { tag: "orders" }, "caller")).rejects.toMatchObject(denied);

  // An alarm is everybody's.
  await send("ops", nodes.stopIssuing.bind(nodes), { validateOnly: false });
  await until("all have the alarm", async () => {
    const alarms =
      (await known())?.nodes.map((node) => node.alarms.map(({ alarm }) => alarm)) ?? [];
    return alarms.length === 3 && alarms.every((names) => names.includes("ISSUING_STOPPED"));
  });
  await send("ops", nodes.resumeIssuing.bind(nodes), { validateOnly: false });

  // One of two processes is frozen: the other one answers without it, and what it missed is missing.
  const pid = pidOf(second, 2);
  freeze(pid);
  const frozenAt = performance.now();
  expect(silences(await figures(first))["second/2"]).toBe(SilenceReason.NO_ANSWER);
  // The connection to that server may have been one to the frozen process, and the next one too.
  await until("the other process is told", async () => {
    const { nodes } = await figures(first);
    return nodes.some(({ instance }) => instance === "second/1");
  });
  await until("it has missed seconds", () => performance.now() - frozenAt > 2_500);
  process.kill(pid, "SIGCONT");
  await until("it tells of the time before and after", async () => {
    const node = (await known())?.nodes.find(({ instance }) => instance === "second/2");
    const [before, after] = node?.runs.slice(-2) ?? [];
    if (before?.startTime === undefined || after?.startTime === undefined) return false;
    const seconds = (after.startTime.getTime() - before.startTime.getTime()) / 1_000;
    expect(issuedBy(node!)).toBe(600);
    return seconds > before.issuedIds.length;
  });

  // One that is frozen as a whole, and then one that is gone.
  freeze(third.process.pid!);
  expect(silences(await figures(first))["third"]).toBe(SilenceReason.NO_ANSWER);
  third.process.signal("SIGCONT");
  await until("it is back", isRefused);
  await third.kill();
  expect(silences(await figures(first))["third"]).toBe(SilenceReason.NO_ANSWER);
});
