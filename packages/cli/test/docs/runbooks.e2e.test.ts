// Every command of docs/runbooks, typed in one world: servers on a SQLite store, a Redis, keys and certificates.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { creating, loadConfig, migrateStore, startServer, storeConfigOf } from "@idmint/server";
import { serverEnv, selfSigned } from "@idmint/testkit";
import { freePort, RedisServer } from "@idmint/testkit/redis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { temporaryFolder } from "../spawn.ts";
import { root, shell, words } from "./snippets.ts";
import { idmint, type CommandResult } from "../support.ts";

const RUNBOOKS = path.join(root, "docs/runbooks");
const { folder, remove } = temporaryFolder();
const etc = (name: string): string => path.join(folder, "etc/idmint", name);
const YAML = path.join(folder, "etc/idmint.yaml");

let redis: RedisServer;
let port = 0;
let tlsPort = 0;
/** The server of all pages, and one with TLS on a store of its own. */
let server: { close: () => Promise<void> } | undefined;
let tlsServer: { close: () => Promise<void> } | undefined;
const typed = new Set<string>();

/** What stands in documents, as it is here. */
function here(text: string): string {
  return text
    .replaceAll(/\/(?=(?:etc|var)\/)/g, `${folder}/`)
    .replaceAll("127.0.0.1:7600", `127.0.0.1:${port}`)
    .replaceAll("localhost:7600", `localhost:${tlsPort}`)
    .replaceAll("host-1:7600", "host-1");
}

function linesOf(page: string): readonly string[] {
  const text = readFileSync(path.join(RUNBOOKS, page), "utf8");
  const blocks = [...text.matchAll(/^ *```sh\n([^]*?)^ *```$/gm)].map(([, code = ""]) => code);
  return blocks.flatMap((block) => {
    return block
      .trim()
      .split("\n")
      .map((line) => line.trim());
  });
}

/** The first token, as docs/access.md makes it: all pages are typed by who has it. */
let token = "";

async function firstToken(): Promise<string> {
  const text = readFileSync(path.join(root, "docs/access.md"), "utf8");
  const [, line = ""] = /(idmint token create .* --store) --store-url/.exec(text) ?? [];
  const ran = await idmint([...words(line).slice(1), "--config", YAML]);
  expect([line, ran.exitCode, ran.err]).toEqual([line, 0, ran.err]);
  return ran.out.trim();
}

/** Types a line of a page: a command of idmint in this process, which is faster, and anything else in a shell. */
async function type(page: string, line: string): Promise<CommandResult> {
  expect(linesOf(page)).toContain(line);
  typed.add(`${page}: ${line}`);
  const env = { IDMINT_ADDRESS: `127.0.0.1:${port}`, IDMINT_TOKEN: token };
  const isAlone = line.startsWith("idmint ") && !/[|>$(]/.test(line);
  return isAlone ? idmint(words(here(line)).slice(1), { env }) : shell(here(line), { env });
}

/** Types a line that has to succeed, and answers what it prints. */
async function out(page: string, line: string): Promise<string> {
  const ran = await type(page, line);
  expect([line, ran.exitCode, ran.out, ran.err]).toEqual([line, 0, ran.out, ran.err]);
  return ran.out;
}

function configure(more: Readonly<Record<string, unknown>> = {}): void {
  const config = {
    instance: "host-1",
    store: { url: `sqlite:${folder}/var/lib/idmint/idmint.db` },
    redis: { urls: redis.url },
    tls: { cert_file: etc("cert.pem"), key_file: etc("key.pem") },
    unguessable: { keys: `1=${etc("key-1")}` },
    limits: { connections: 1_000 },
    log: { level: "silent" },
    ...more,
  };
  writeFileSync(YAML, JSON.stringify(config));
}

const PLAIN = (): object => ({
  tls: {},
  grpc: { address: `127.0.0.1:${port}` },
  http: { address: "127.0.0.1:0" },
});

/** Starts the server with what stands in the file, but for TLS. */
async function start(): Promise<void> {
  const file = path.join(folder, "plain.yaml");
  const config = JSON.parse(readFileSync(YAML, "utf8")) as object;
  writeFileSync(file, JSON.stringify({ ...config, ...PLAIN() }));
  server = await startServer(loadConfig({ env: serverEnv(), flags: { config: file } }));
}

async function stop(): Promise<void> {
  await server?.close();
  server = undefined;
}

const WAIT = { timeout: 20_000 };

async function next(tag: string): Promise<bigint> {
  const env = { IDMINT_ADDRESS: `127.0.0.1:${port}`, IDMINT_TOKEN: token };
  const take = (): ReturnType<typeof idmint> => idmint(["id", "next", tag], { env });
  // A server that has just begun may not know yet how far Redis has counted, and says so.
  let ran = await take();
  await expect
    .poll(async () => (ran.exitCode === 0 ? ran : (ran = await take())).err, WAIT)
    .toBe("");
  return BigInt(ran.out.trim());
}

async function create(...args: readonly string[]): Promise<void> {
  const env = { IDMINT_ADDRESS: `127.0.0.1:${port}`, IDMINT_TOKEN: token };
  const ran = await idmint(["tag", "create", ...args], { env });
  expect([ran.exitCode, ran.err]).toEqual([0, ""]);
}

function putCertificate(ending: string, until?: string): void {
  const { cert, key } = selfSigned("localhost", until === undefined ? {} : { until });
  writeFileSync(etc(`cert.pem${ending}`), cert);
  writeFileSync(etc(`key.pem${ending}`), key, { mode: 0o600 });
  // Each is its own authority; callers trust the new one at once.
  writeFileSync(etc("ca.pem"), cert);
}

beforeAll(async () => {
  for (const name of ["etc/idmint", "var/lib/idmint", "var/backups"]) {
    mkdirSync(path.join(folder, name), { recursive: true });
  }
  writeFileSync(etc("key-1"), "00112233445566778899aabbccddeeff\n", { mode: 0o400 });
  const inTenDays = new Date(Date.now() + 10 * 86_400_000);
  putCertificate("", inTenDays.toISOString().replaceAll(/[-:T]|\..*/g, "") + "Z");
  redis = await RedisServer.start({ settings: { appendonly: "yes" } });
  [port, tlsPort] = [await freePort(20_000, 24_000), await freePort(24_001, 29_000)];
  configure();
  const config = loadConfig({ env: serverEnv(), flags: { config: YAML } });
  await migrateStore(creating(storeConfigOf(config)), { dryRun: false });
  token = await firstToken();
  await start();
  const other = { "store-url": `sqlite:${folder}/tls.db`, "grpc-address": `127.0.0.1:${tlsPort}` };
  const flags = { config: YAML, ...other, "http-address": "127.0.0.1:0", "redis-urls": "" };
  const tlsConfig = loadConfig({
    env: serverEnv(),
    flags: { ...flags, "node-advertise": `localhost:${tlsPort}` },
  });
  await migrateStore(creating(storeConfigOf(tlsConfig)), { dryRun: false });
  tlsServer = await startServer(tlsConfig);
  await create("orders", "--ceiling", "int32");
  await create("invoices", "--kind", "sequence", "--backend", "redis");
});

afterAll(async () => {
  await Promise.all([server?.close(), tlsServer?.close()]);
  await redis.close();
  remove();
});

test("certificate rotation: the files are put in place", async () => {
  const page = "certificate-rotation.md";
  const [look = "", chmod = "", key = "", cert = "", machine = ""] = linesOf(page);
  const before = await out(page, look);
  expect(before).toMatch(/^warn +tls +the certificate expires in (9|10) days/m);
  putCertificate(".new");
  for (const line of [chmod, key, cert, machine]) await out(page, line);
});

test("restart", async () => {
  const page = "restart.md";
  const [check = "", list = "", drain = "", undrain = "", doctor = ""] = linesOf(page);
  expect(await out(page, check)).toMatch(/^store\.url +sqlite:.*idmint\.yaml: store\.url$/m);
  const before = await next("orders");
  expect(await out(page, list)).toContain("host-1");
  await out(page, drain);
  const refused = await type(page, doctor);
  expect([refused.exitCode, refused.out]).toEqual([5, expect.stringContaining("it is draining")]);
  await stop();
  await start();
  await out(page, undrain);
  await expect.poll(() => type(page, doctor), { timeout: 20_000 }).toMatchObject({ exitCode: 0 });
  expect(await next("orders")).toBeGreaterThan(before);
});

test("upgrade", async () => {
  for (const line of linesOf("upgrade.md")) await out("upgrade.md", line);
});

test("backup, then restore with ids in use that the backup does not know", async () => {
  const [tags = "", copy = "", look = ""] = linesOf("backup.md");
  await out("backup.md", tags);
  await stop();
  await out("backup.md", copy);
  const looked = await type("backup.md", look);
  expect([looked.exitCode, looked.out]).toEqual([5, expect.stringMatching(/^tags +2$/m)]);
  const saved = readFileSync(path.join(folder, "var/backups/idmint-tags.json"), "utf8");
  expect((JSON.parse(saved) as { tags: object[] }).tags).toHaveLength(2);

  await start();
  const issued = await next("orders");
  await stop();
  const page = "restore.md";
  const [move = "", back = "", accept = "", status = "", id = "", doctor = ""] = linesOf(page);
  for (const line of [move, back]) await out(page, line);
  expect((await type(page, status)).exitCode).toBe(5);
  await out(page, accept);
  await start();
  expect(await out(page, status)).toMatch(/^grants +yes$/m);
  expect(BigInt((await out(page, id)).trim())).toBeGreaterThan(issued + 999_000_000n);
  await out(page, doctor);
});

test("fail-over: what it looks at", async () => {
  for (const line of linesOf("fail-over.md")) await out("fail-over.md", line);
});

test("Redis lost: it comes back empty, and ids go on above", async () => {
  const page = "redis-lost.md";
  const [look = "", , id = ""] = linesOf(page);
  const before = await next("invoices");
  await redis.kill();
  expect((await type(page, look)).out).toMatch(/^fail +redis default[^]*→ start it/m);
  redis.wipe();
  await redis.start();
  await expect.poll(() => type(page, look), { timeout: 20_000 }).toMatchObject({ exitCode: 0 });
  await expect.poll(() => type(page, id), { timeout: 20_000 }).toMatchObject({ exitCode: 0 });
  expect(BigInt((await out(page, id)).trim())).toBeGreaterThan(before);
});

test("server down: one that was drained takes calls again", async () => {
  const page = "server-down.md";
  const [list = "", undrain = "", machine = "", doctor = ""] = linesOf(page);
  await out("restart.md", "idmint node drain host-1:7600 --yes");
  expect(await out(page, list)).toContain("host-1");
  expect((await type(page, doctor)).exitCode).toBe(5);
  await out(page, undrain);
  await expect.poll(() => type(page, doctor), { timeout: 20_000 }).toMatchObject({ exitCode: 0 });
  await out(page, machine);
});

test("overload: a server gets a smaller share for a while", async () => {
  const page = "overload.md";
  const [status = "", list = "", less = "", check = "", again = "", doctor = ""] = linesOf(page);
  await out(page, status);
  await out(page, less);
  expect(await out(page, list)).toMatch(/host-1.* 10 /);
  await out(page, check);
  await out(page, again);
  expect(await out(page, list)).toMatch(/host-1.* 100 /);
  await out(page, doctor);
});

test("refusals: a tag is paused, then everything is stopped", async () => {
  const page = "refusals.md";
  const [doctor = "", machine = "", who = "", resume = "", all = "", id = ""] = linesOf(page);
  const env = { IDMINT_ADDRESS: `127.0.0.1:${port}`, IDMINT_TOKEN: token };
  await idmint(["tag", "pause", "orders"], { env });
  await idmint(["stop-issuing", "--all", "--yes"], { env });
  expect((await type(page, machine)).out).toMatch(
    /^fail +health[^]*→ idmint resume-issuing --all/m,
  );
  expect(await out(page, who)).toContain("orders");
  expect(await type(page, id)).toMatchObject({ exitCode: 1 });
  for (const line of [resume, all]) await out(page, line);
  await expect.poll(() => type(page, id), { timeout: 20_000 }).toMatchObject({ exitCode: 0 });
  await expect.poll(() => type(page, doctor), { timeout: 20_000 }).toMatchObject({ exitCode: 0 });
});

test("segments low: a tag may take longer segments", async () => {
  const page = "segments-low.md";
  const [doctor = "", get = "", update = ""] = linesOf(page);
  const env = { IDMINT_ADDRESS: `127.0.0.1:${port}`, IDMINT_TOKEN: token };
  await idmint(["tag", "update", "orders", "--max", "1000"], { env });
  await out(page, doctor);
  expect(await out(page, get)).not.toContain("100000000");
  await out(page, update);
  expect(await out(page, get)).toContain("100000000");
});

test("worker ids: who has them", async () => {
  const page = "worker-ids.md";
  const [look = "", list = "", id = ""] = linesOf(page);
  await create("trace", "--kind", "snowflake");
  await expect.poll(() => type(page, id), { timeout: 20_000 }).toMatchObject({ exitCode: 0 });
  expect(await out(page, list)).toContain("host-1");
  await out(page, look);
});

test("what the pages without a fault of their own here look at", async () => {
  const pages = ["store-unavailable", "ticket-database-lost", "ledger-behind"];
  for (const page of [...pages, "alarms-not-delivered"].map((name) => `${name}.md`)) {
    for (const line of linesOf(page)) {
      await expect.poll(() => type(page, line), { timeout: 20_000 }).toMatchObject({ exitCode: 0 });
    }
  }
});

test("clock wrong: it is looked at, and a server is taken out meanwhile", async () => {
  const page = "clock-wrong.md";
  const [look = "", list = "", drain = "", undrain = ""] = linesOf(page);
  expect(await out(page, look)).toMatch(/^ok +clocks +2 clocks within/m);
  await out(page, list);
  await out(page, drain);
  await out(page, undrain);
  await expect.poll(() => type(page, look), { timeout: 20_000 }).toMatchObject({ exitCode: 0 });
});

test("a tag runs out: its successor begins above its ceiling", async () => {
  const page = "tag-runs-out.md";
  const [capacity = "", get = "", make = "", pause = "", id = "", wide = ""] = linesOf(page);
  expect(await out(page, capacity)).toContain("ceiling");
  expect(await out(page, get)).toContain("2147483647");
  await out(page, make);
  await out(page, pause);
  expect(BigInt((await out(page, id)).trim())).toBe(2n ** 31n);
  await out(page, wide);
});

test("key rotation: new ids are of the new key", async () => {
  const page = "key-rotation.md";
  const [make = "", check = "", doctor = "", update = "", id = ""] = linesOf(page);
  await create("coupons", "--ceiling", "99999999", "--key-id", "1");
  expect(String(await next("coupons"))).toMatch(/^1\d{8}$/);
  await out(page, make);
  configure({ unguessable: { keys: `1=${etc("key-1")},2=${etc("key-2")}` } });
  await out(page, check);
  await out(page, doctor);
  await stop();
  await start();
  await out(page, update);
  expect((await out(page, id)).trim()).toMatch(/^2\d{8}$/);
});

test("certificate rotation: the server shows the new one by now", async () => {
  const page = "certificate-rotation.md";
  const [look = ""] = linesOf(page);
  await expect
    .poll(async () => (await type(page, look)).out, { timeout: 60_000, interval: 1_000 })
    .toMatch(/^ok +tls +\S+ valid until Dec 31 23:59:59 2099 GMT$/m);
});

test("no command of a runbook was left out, and every page is listed", () => {
  const pages = readdirSync(RUNBOOKS).filter((name) => name !== "README.md");
  const all = pages.flatMap((page) => linesOf(page).map((line) => `${page}: ${line}`));
  expect(all.filter((line) => !typed.has(line))).toEqual([]);
  const list = readFileSync(path.join(RUNBOOKS, "README.md"), "utf8");
  expect(pages.filter((page) => !list.includes(`](${page})`))).toEqual([]);
});
