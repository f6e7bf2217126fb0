import { TestPostgres } from "@idmint/testkit/postgres";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { cli, serve } from "../spawn.ts";
import { shell, snippets } from "./snippets.ts";

let postgres: TestPostgres;

beforeAll(async () => {
  // Durable, as a server for production must be: nothing unsafe has to be allowed.
  postgres = await TestPostgres.start({ durable: true });
});

afterAll(async () => {
  await postgres.close();
});

beforeEach(async () => {
  await postgres.query("DROP DATABASE IF EXISTS idmint WITH (FORCE)");
});

/** As printed, but for the port. */
function here(code: string): string {
  return code.replaceAll("127.0.0.1:5432", `127.0.0.1:${postgres.port}`);
}

/** What the `export` lines of a snippet set, and its other lines. */
function parse(code: string): { env: Record<string, string>; lines: string[] } {
  const lines = here(code).trimEnd().split("\n");
  const exports = lines.filter((line) => line.startsWith("export "));
  const pairs = exports.map((line) => /^export (\w+)=(.*)$/.exec(line)?.slice(1) ?? []);
  return {
    env: Object.fromEntries(pairs) as Record<string, string>,
    lines: lines.filter((line) => !exports.includes(line)),
  };
}

/** Superusers' statements one at a time: PostgreSQL makes no database within a transaction. */
async function runSql(sql: string, database?: string): Promise<void> {
  for (const statement of sql.split(";\n").filter((part) => part.trim() !== "")) {
    await postgres.query(statement, database);
  }
}

/** Serves a while with what a snippet exports, and uses everything that a server does with its store. */
async function useAll(env: Record<string, string>): Promise<void> {
  const server = await serve(["serve"], { env });
  const place = { env: { IDMINT_ADDRESS: server.grpcAddress } };
  const run = async (...args: string[]): Promise<string> => {
    const { exitCode, out, err } = await cli(args, place);
    expect([exitCode, err]).toEqual([0, ""]);
    return out;
  };
  await run("tag", "create", "orders");
  expect(await run("id", "next", "orders")).toBe("1\n");
  await run("tag", "update", "orders", "--hold-for", "1m");
  await run("tag", "advance", "orders", "--floor", "5000", "--yes", "--json");
  expect(await run("id", "next", "orders")).toBe("5001\n");
  await run("tag", "delete", "orders", "--yes", "--json");
  await run("status");
  expect(await server.stop()).toBe(0);
  expect(server.words()).toContain('"givenBack":');
}

test("a role that only serves needs no more than docs/postgres.md grants it", async () => {
  const [roles = "", grants = ""] = snippets("docs/postgres.md", "PostgreSQL", "sql");
  const [migrate = "", run = ""] = snippets("docs/postgres.md", "PostgreSQL", "sh");
  await runSql(roles);
  const owner = parse(migrate);
  expect(owner.lines).toEqual(["idmint migrate --dry-run", "idmint migrate"]);
  const migrated = await shell(owner.lines.join("\n"), { env: owner.env });
  expect([migrated.exitCode, migrated.err]).toEqual([0, ""]);
  await runSql(`SET ROLE idmint_owner;\n${grants}`.replaceAll(";\n", ";"), "idmint");

  const { env, lines } = parse(run);
  expect(lines).toEqual(["idmint serve --instance host-1"]);
  await useAll(env);
  const accepted = await cli(["store", "accept", "--gap", "10", "--yes", "--json"], { env });
  expect(JSON.parse(accepted.out)).toMatchObject({ tags: 1, gap: "10", fenced: "" });
  const forbidden = await cli(["migrate"], { env });
  expect(forbidden.out).toMatch(/up to date/);
});
