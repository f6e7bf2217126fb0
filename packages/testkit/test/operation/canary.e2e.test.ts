// Secrets in every place where one goes, and all that a server and its command line say and show: no secret is in it.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { selfSigned } from "../../src/certificate.ts";
import { Child, killChildren, runCli } from "../../src/fleet/child.ts";
import { CLI } from "../../src/program.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { until } from "../../src/fleet/until.ts";

const folder = mkdtempSync(path.join(tmpdir(), "idmint-canary-"));
const secrets = new Map<string, string>();
/** Everything that was said, by who said it. */
const said: { readonly who: string; readonly text: string }[] = [];

/** A secret that stands nowhere else, with signs that must be escaped in URLs. */
function secret(name: string): string {
  const value = `c4n4ry-${name}-%2F/${Math.random().toString(36).slice(2)}`;
  secrets.set(name, value);
  return value;
}

function file(name: string, text: string): string {
  const at = path.join(folder, name);
  writeFileSync(at, text, { mode: 0o600 });
  return at;
}

afterAll(async () => {
  await killChildren();
  rmSync(folder, { recursive: true });
});

/** Listens and says nothing, as a database does that is not one. */
let silent: string;
beforeAll(async () => {
  const server = createServer((socket) => socket.on("error", () => undefined).destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  silent = `127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  return () => server.close();
});

async function run(env: Readonly<Record<string, string>>, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await runCli(args, env);
  said.push({ who: `idmint ${args.join(" ")}`, text: stdout + stderr });
  // It was about something, and not about a flag that does not exist.
  expect(stdout + stderr).not.toBe("");
  expect(stderr).not.toContain("unknown option");
  return stdout + stderr;
}

/** How a secret may look: as it is, in a URL, in base64. */
function looksOf(value: string): readonly string[] {
  const base64 = Buffer.from(value).toString("base64").replaceAll("=", "");
  // Of base64 with something before it, what is the same wherever it begins.
  const shifted = [1, 2].map((by) =>
    Buffer.from(value.slice(3 - by))
      .toString("base64")
      .replaceAll("=", "")
      .slice(0, -2),
  );
  return [value, encodeURIComponent(value), base64.slice(0, -2), ...shifted];
}

test("a server with a secret in every option tells none, whatever goes wrong", async () => {
  const { cert, key } = selfSigned("localhost");
  const keyOfIds = "c4".repeat(16);
  secrets.set("key of unguessable ids", keyOfIds);
  secrets.set("TLS key", key.split("\n").at(1) ?? "");
  const address = `127.0.0.1:${await freePort()}`;
  const http = `127.0.0.1:${await freePort()}`;
  const env = {
    IDMINT_STORE_URL: `sqlite:${path.join(folder, "idmint.db")}`,
    IDMINT_GRPC_ADDRESS: address,
    IDMINT_HTTP_ADDRESS: http,
    IDMINT_LOG_LEVEL: "trace",
    IDMINT_DRAIN_DELAY: "0s",
    IDMINT_TLS_CERT_FILE: file("server.crt", cert),
    IDMINT_TLS_KEY_FILE: file("server.key", key),
    IDMINT_UNGUESSABLE_KEYS: `1=${file("ids.key", keyOfIds)}`,
    IDMINT_REDIS_URLS: `redis+sentinel://someone@${silent}/main/0`,
    IDMINT_REDIS_PASSWORD: secret("redis"),
    IDMINT_REDIS_SENTINEL_PASSWORD_FILE: file("sentinel", secret("sentinel")),
    IDMINT_TICKET_URLS: `a=postgres://someone@${silent}/ids`,
    IDMINT_TICKET_PASSWORD: secret("ticket"),
    IDMINT_ALARM_WEBHOOK_URL: `http://${silent}/${encodeURIComponent(secret("webhook"))}`,
    IDMINT_ALARM_WEBHOOK_TOKEN: secret("token"),
    IDMINT_ALARM_AFTER: "0s",
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://${silent}`,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=${encodeURIComponent(secret("collector"))}`,
    OTEL_METRIC_EXPORT_INTERVAL: "200",
  };
  const only = { IDMINT_STORE_URL: env.IDMINT_STORE_URL };
  await run(only, "migrate");
  await run(env, "config", "check");
  const made = await runCli(["token", "create", "ops", "--admin", "*", "--store"], only);
  const token = made.stdout.trim();
  expect(token, made.stderr).toMatch(/^\S{40,}$/);
  secrets.set("bearer token", token);
  secrets.set("secret of the bearer token", token.split("_").slice(2).join("_"));
  const server = new Child(CLI, ["serve", "--processes", "2"], { name: "serve", env });
  await until(
    "it serves, or says why not",
    () => server.exit !== undefined || /grpcAddress|serving/.test(server.stdout + server.stderr),
    { withinMs: 60_000 },
  );
  for (const pid of pidsBelow(server.pid ?? 0)) {
    const text = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    said.push({ who: `arguments of ${pid}`, text });
  }
  const caFile = env.IDMINT_TLS_CERT_FILE;
  const asked = ["--address", address.replace("127.0.0.1", "localhost"), "--ca-file", caFile];
  expect(await run({ IDMINT_TOKEN: token }, "token", "list", ...asked)).toContain("ops");
  const wrong = `${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`;
  expect(await run({ IDMINT_TOKEN: wrong }, "status", ...asked)).toContain("UNAUTHENTICATED");
  await until("it tells what it cannot reach", () => {
    return /webhook refused/.test(server.stderr) && /Redis does not answer/.test(server.stderr);
  });
  server.signal("SIGTERM");
  await server.waitForEnd(60_000);
  said.push({ who: "serve", text: server.stdout + server.stderr });
  expectNone();
});

test("stores that cannot be reached are told without their passwords", async () => {
  const password = secret("store");
  const user = `postgres://someone@${silent}/ids`;
  // Long enough to be told that it tries again.
  const soon = { IDMINT_STORE_START_TIMEOUT: "2s", IDMINT_LOG_LEVEL: "trace" };
  const asOption = { IDMINT_STORE_URL: user, IDMINT_STORE_PASSWORD: password };
  await run({ ...asOption, ...soon }, "serve");
  const inUrl = encodeURIComponent(password);
  const urls = {
    IDMINT_STORE_URL: `postgres://someone:${inUrl}@${silent}/ids?password=${inUrl}`,
    IDMINT_REDIS_URLS: `redis://someone:${inUrl}@${silent}/0`,
    IDMINT_TICKET_URLS: `a=postgres://someone:${inUrl}@${silent}/ids`,
    IDMINT_ALARM_WEBHOOK_URL: `http://someone:${inUrl}@${silent}/`,
  };
  await run({ ...urls, ...soon }, "serve");
  expectNone();
});

function expectNone(): void {
  const found = said.flatMap(({ who, text }) =>
    [...secrets].flatMap(([name, value]) =>
      looksOf(value).some((look) => text.includes(look)) ? [`${name} in what ${who} said`] : [],
    ),
  );
  expect(found).toEqual([]);
}

/** A process and all that it began. */
function pidsBelow(root: number): readonly number[] {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const text = readFileSync(`/proc/${name}/stat`, "utf8");
        return [
          [Number(name), Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1])] as const,
        ];
      } catch {
        // It has ended.
        return [];
      }
    });
  const found = [root];
  for (const pid of found)
    found.push(...parents.filter(([, of]) => of === pid).map(([own]) => own));
  return found;
}
