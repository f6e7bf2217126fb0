// What docs/fail-over.md says to type, typed on real pairs.
import { setTimeout as pause } from "node:timers/promises";
import type { TestPostgres } from "@idmint/testkit/postgres";
import { TestPostgresPair } from "@idmint/testkit/postgres-pair";
import { expect, onTestFinished, test } from "vitest";
import { cli, serve } from "../spawn.ts";
import { shell, snippet, snippets } from "./snippets.ts";

const DOC = "docs/fail-over.md";
const ROLES = "docs/postgres.md";

/** One statement at a time: PostgreSQL makes no database, and sets nothing of the system, within a transaction. */
async function runSql(server: TestPostgres, sql: string, database?: string): Promise<void> {
  for (const statement of sql.split(";\n").filter((part) => part.trim() !== "")) {
    await server.query(statement, database);
  }
}

interface Scene {
  readonly pair: TestPostgresPair;
  readonly env: Readonly<Record<string, string>>;
  /** Types a command of the command line. */
  readonly type: (...args: string[]) => ReturnType<typeof cli>;
  /** Waits until an id is given, and answers it. */
  readonly nextId: () => Promise<number>;
}

/** `ask` starts a process each time, which takes as much of the machine as a server that works. */
async function until(what: string, ask: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 40_000; performance.now() < end; await pause(400)) {
    if (await ask()) return;
  }
  throw new Error(`never: ${what}`);
}

/** A pair with the roles that the documents advise, and a server with all hosts in its URL. */
async function withPair(work: (scene: Scene) => Promise<void>): Promise<void> {
  await using pair = await TestPostgresPair.start("asynchronous");
  const [roles = "", grants = ""] = snippets(ROLES, "PostgreSQL", "sql");
  const [, url = ""] =
    /IDMINT_STORE_URL=(\S+)/.exec(snippet(DOC, "PostgreSQL with standbys", "sh")) ?? [];
  const here = url
    .replace("127.0.0.1:5432", `127.0.0.1:${pair.primary.port}`)
    .replace("127.0.0.1:5433", `127.0.0.1:${pair.standby.port}`);
  expect(here).not.toContain(":543");
  const env = { IDMINT_STORE_URL: here, IDMINT_STORE_PASSWORD: "change-me-too" };
  await runSql(pair.primary, roles);
  const owner = { IDMINT_STORE_URL: here.replace("idmint_server", "idmint_owner") };
  expect((await cli(["migrate"], { env: owner })).exitCode).toBe(0);
  await runSql(pair.primary, `SET ROLE idmint_owner;\n${grants}`.replaceAll(";\n", ";"), "idmint");
  const server = await serve(["serve"], { env });
  onTestFinished(async () => {
    await server.stop();
  });
  const place = { env: { ...env, IDMINT_ADDRESS: server.grpcAddress } };
  const type: Scene["type"] = (...args) => cli(args, place);
  expect((await type("tag", "create", "orders")).exitCode).toBe(0);
  const nextId = async (): Promise<number> => {
    let id = 0;
    await until("an id is given", async () => {
      const { exitCode, out } = await type("id", "next", "orders");
      id = Number(out);
      return exitCode === 0;
    });
    return id;
  };
  expect(await nextId()).toBe(1);
  await work({ pair, env, type, nextId });
}

test("the steps for an asynchronous pair work as printed", async () => {
  await withPair(async ({ pair, env, type, nextId }) => {
    await pair.caughtUp();
    await pair.primary.stop("kill");
    await pair.promote(snippet(DOC, "An asynchronous pair", "sql"));
    expect((await type("store", "status")).exitCode).toBe(5);
    const accept = snippet(DOC, "An asynchronous pair", "sh");
    const refused = await shell(accept.replace(" --old-primary-is-stopped", ""), { env });
    expect(refused.err).toContain("--old-primary-is-stopped");
    const accepted = await shell(accept, { env });
    expect([accepted.exitCode, accepted.out]).toEqual([
      0,
      "accepted: the floors of 1 tags were raised by 1000000000\n",
    ]);
    expect(await nextId()).toBeGreaterThan(1_000_000_000);
  });
});

test("the steps for a synchronous pair work as printed", async () => {
  await withPair(async ({ pair, env, type, nextId }) => {
    const [status = ""] = snippets(DOC, "A synchronous pair", "sh");
    const [shown = ""] = snippets(DOC, "A synchronous pair", "text");
    const setUp = snippet(DOC, "A synchronous pair", "sql");
    const isRecorded = async (line: string): Promise<boolean> =>
      (await shell(status, { env })).out.includes(line);
    await runSql(pair.primary, setUp);
    await until("the standby is recorded", () => isRecorded(shown));
    const before = await nextId();
    // The server knows for certain what the standby has once it has polled again.
    await pause(2_000);
    await pair.primary.stop("kill");
    await pair.promote(snippet(DOC, "When the primary fails", "sql"));
    await until("it is accepted", async () => (await type("store", "status")).exitCode === 0);
    expect(await nextId()).toBeGreaterThan(before);

    await pair.rejoin();
    await runSql(pair.primary, setUp.replace("'b'", "'a'"));
    await until("the other standby is recorded", () => isRecorded(shown.replace(/b\n$/, "a\n")));
    await pair.standby.stop("kill");
    await runSql(pair.primary, snippet(DOC, "When the standby fails or stalls", "sql"));
    const accepted = await shell(snippet(DOC, "When the standby fails or stalls", "sh"), { env });
    expect([accepted.exitCode, accepted.out], accepted.err).toEqual([
      0,
      "accepted: the floors of 1 tags were raised by 0\n",
    ]);
    expect(await nextId()).toBeGreaterThan(before);
    expect(await isRecorded("none that all answers wait for")).toBe(true);
  });
});
