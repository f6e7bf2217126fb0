// A context whose token came by standard input, and the audit trail of what was done with it.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { devServer } from "../dev-server.ts";
import { CLI, cleanEnv, cli, temporaryFolder, untilEnd } from "../spawn.ts";

interface Events {
  readonly events: readonly {
    readonly principal: string;
    readonly proof: string;
    readonly method: string;
    readonly outcome: string;
    readonly after: string;
  }[];
}

const server = devServer();

test("the audit trail names who came by a context's token, and who made the store", async () => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const env = { IDMINT_CONFIG_HOME: folder };
  const { grpcAddress } = server;
  const token = (await server.idmint("token", "create", "ops-1", "--admin", "*")).out;
  const [command, ...rest] = CLI;
  const add = ["context", "add", "dev", "--address", grpcAddress, "--token-file", "-"];
  const adding = spawn(command, [...rest, ...add], { env: { ...cleanEnv(), ...env } });
  adding.stdin.end(token);
  expect((await untilEnd(adding)).exitCode).toBe(0);
  expect(readFileSync(path.join(folder, "contexts.json"), "utf8")).toContain(token.trim());

  expect((await cli(["tag", "create", "orders"], { env })).exitCode).toBe(0);
  // With a principal there, nobody is let in without a token.
  expect((await server.idmint("tag", "pause", "orders")).exitCode).not.toBe(0);
  const list = async (...args: string[]): Promise<Events> =>
    JSON.parse((await cli(["audit", "list", "--json", ...args], { env })).out) as Events;
  expect((await list("--resource", "tag/orders", "--kind", "change")).events).toMatchObject([
    {
      principal: "ops-1",
      proof: "token",
      method: "/idmint.v1.TagService/CreateTag",
      outcome: "OK",
    },
  ]);
  const ok = ["--resource", "tag/orders", "--outcome", "OK"];
  expect((await list(...ok)).events).toMatchObject([{ outcome: "OK" }]);
  const [made] = (await list("--resource", "store")).events;
  const { username } = userInfo();
  expect(made).toMatchObject({ principal: username, proof: "claim", method: "idmint start-dev" });
  await expect
    .poll(async () => (await list("--kind", "refusal")).events, { timeout: 15_000, interval: 500 })
    .toMatchObject([{ principal: "", outcome: "UNAUTHENTICATED" }]);
  const text = (await cli(["audit", "list", "--principal", "ops-1"], { env })).out;
  expect(text).toMatch(/^TIME +PRINCIPAL +PROOF +FROM +METHOD +RESOURCE +OUTCOME\n/u);
  expect(text).toMatch(/ops-1 +token +127\.0\.0\.1:\d+ +CreateTag +tag\/orders +OK/u);
});
