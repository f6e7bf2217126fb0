// `idmint token …`: the first token in the store itself, the others through a server that is reachable from outside.
import { chmodSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createIdClient } from "@idmint/client";
import { expect, onTestFinished, test } from "vitest";
import { cli, serve, temporaryFolder } from "../../spawn.ts";
import type { CommandResult } from "../../support.ts";

test("tokens are made in the store and by a server, listed and revoked, and shown nowhere else", async () => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const flags = ["--store-url", `sqlite:${path.join(folder, "idmint.db")}`];
  expect((await cli(["migrate", ...flags])).exitCode).toBe(0);
  const first = await cli(["token", "create", "ops", "--admin", "*", "--store", ...flags]);
  expect(first.exitCode, first.err).toBe(0);
  expect(first.out).toMatch(/^idm_[0-9a-f]{16}_[\w-]{43}\n$/u);
  const server = await serve(["serve", ...flags]);
  onTestFinished(async () => {
    await server.stop();
  });
  const file = path.join(folder, "ops.token");
  writeFileSync(file, first.out);
  chmodSync(file, 0o400);
  const env = { IDMINT_ADDRESS: server.grpcAddress };
  const ops = (...args: string[]): Promise<CommandResult> =>
    cli([...args, "--token-file", file], { env });
  const refused = await cli(["tag", "list"], { env });
  expect([refused.exitCode, refused.err]).toEqual([
    1,
    expect.stringContaining("UNAUTHENTICATED") as string,
  ]);
  expect((await ops("tag", "create", "orders")).exitCode).toBe(0);
  const made = await ops("token", "create", "orders", "--issue", "orders", "--expires", "1h");
  expect(made.exitCode, made.err).toBe(0);
  const token = made.out.trim();
  const [, id = "", secret = ""] = /^idm_(\w{16})_(.{43})$/.exec(token) ?? [];
  // The SDK and the command line use it, for what it is for.
  const client = createIdClient({ address: server.grpcAddress, token: () => token });
  expect(await client.tag("orders").next()).toBeGreaterThan(0n);
  await client.close();
  const its = { ...env, IDMINT_TOKEN: token };
  const forbidden = await cli(["tag", "delete", "orders", "--yes"], { env: its });
  expect(forbidden.err).toContain("PERMISSION_DENIED");
  const listed = await ops("token", "list");
  expect(listed.out).toMatch(new RegExp(`^${id} +orders +issue:orders `, "mu"));
  expect(listed.out + made.err).not.toContain(secret);
  expect((await ops("token", "revoke", id, "--yes")).exitCode).toBe(0);
  const gone = await cli(["id", "next", "orders"], { env: its });
  expect(gone.err).toContain("UNAUTHENTICATED");
  const told = await ops("audit", "list");
  expect(told.out).toMatch(/ops +token +\S+ +RevokeToken +token\/[0-9a-f]{16} +OK/u);
  // Secrets are in no log, no error and no list.
  for (const text of [server.words(), forbidden.err, gone.err, told.out, refused.err]) {
    expect(text).not.toContain(secret);
  }
});
