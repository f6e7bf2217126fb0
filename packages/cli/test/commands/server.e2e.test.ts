import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { cli, serve, type Served, start, temporaryFolder, untilEnd } from "../spawn.ts";

function emptyFolder(): string {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  return folder;
}

/** A store that `idmint migrate` made. */
async function madeStore(): Promise<{ folder: string; file: string; flags: string[] }> {
  const folder = emptyFolder();
  const file = path.join(folder, "store", "idmint.db");
  const flags = ["--store-url", `sqlite:${file}`];
  const { exitCode, err } = await cli(["migrate", ...flags]);
  expect(exitCode, err).toBe(0);
  return { folder, file, flags };
}

async function served(args: readonly string[], cwd?: string): Promise<Served> {
  const server = await serve(args, cwd === undefined ? {} : { cwd });
  onTestFinished(async () => {
    await server.stop();
  });
  return server;
}

function on(server: Served): { env: Record<string, string> } {
  return { env: { IDMINT_ADDRESS: server.grpcAddress } };
}

test("start-dev makes a store and the tag demo, says what to type next, and ends with 0 on SIGTERM", async () => {
  const folder = emptyFolder();
  const child = start(
    ["start-dev", "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"],
    {
      cwd: folder,
    },
  );
  const ended = untilEnd(child);
  let words = "";
  const address = await new Promise<string>((resolve) => {
    child.stderr?.on("data", (chunk: Buffer) => {
      words += chunk.toString();
      const found = /idmint id next demo --address (\S+)/.exec(words)?.[1];
      if (found !== undefined && words.includes("Ctrl-C")) resolve(found);
    });
  });
  expect(words).toContain(`grpcurl -plaintext -d '{"tag":"demo"}' ${address}`);
  expect(existsSync(path.join(folder, ".idmint", "idmint.db"))).toBe(true);
  expect((await cli(["id", "next", "demo", "--address", address])).out).toBe("1\n");
  child.kill("SIGTERM");
  expect(await ended).toMatchObject({ exitCode: 0, out: "" });
  // Unused ids went back: the next run goes on where this one ended.
  const again = await served(["start-dev"], folder);
  expect((await cli(["id", "next", "demo"], on(again))).out).toBe("2\n");
});

test("an address that is taken is refused before anything is made", async () => {
  const folder = emptyFolder();
  const other = createServer();
  await new Promise<void>((resolve) => {
    other.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    other.close();
  });
  const { port } = other.address() as { port: number };
  const args = ["start-dev", "--grpc-address", `127.0.0.1:${port}`];
  const { exitCode, out, err } = await cli(args, { cwd: folder });
  expect([exitCode, out]).toEqual([2, ""]);
  expect(err).toContain(`127.0.0.1:${port} is taken by another program`);
  expect(err).toContain("--grpc-address");
  expect(existsSync(path.join(folder, ".idmint"))).toBe(false);
});

test("serve takes a store that migrate made, and none that is not there", async () => {
  const { file, flags } = await madeStore();
  const server = await served(["serve", ...flags]);
  expect((await cli(["tag", "create", "a"], on(server))).exitCode).toBe(0);
  expect((await cli(["id", "next", "a"], on(server))).out).toBe("1\n");
  expect(await server.stop()).toBe(0);
  rmSync(path.dirname(file), { recursive: true });
  const { exitCode, err } = await cli(["serve", ...flags, "--http-address", "127.0.0.1:0"]);
  expect(exitCode).toBe(1);
  expect(err).toContain("SCHEMA_MISMATCH");
  expect(existsSync(path.dirname(file))).toBe(false);
  // The hint makes this store, and not one at the default path.
  const hint = /make one with: (?:\S*)idmint migrate (.*)/.exec(err)?.[1]?.replaceAll("'", "");
  expect(
    (await cli(["migrate", ...(hint ?? "").split(" ")], { cwd: emptyFolder() })).exitCode,
  ).toBe(0);
  expect(existsSync(file)).toBe(true);
});

test("variables configure the server, and IDMINT_ADDRESS is not one of them", async () => {
  const { file } = await madeStore();
  const env = { IDMINT_STORE_URL: `sqlite:${file}`, IDMINT_ADDRESS: "127.0.0.1:7600" };
  const server = await serve(["serve"], { env });
  expect(await server.stop()).toBe(0);
  const misspelt = await cli(["serve"], { env: { IDMINT_STORE_ULR: `sqlite:${file}` } });
  expect(misspelt.exitCode).toBe(2);
  expect(misspelt.err).toContain("did you mean IDMINT_STORE_URL?");
});

test("migrate says what it would do, does it, and does it once", async () => {
  const folder = emptyFolder();
  const file = path.join(folder, "idmint.db");
  const args = ["migrate", "--store-url", `sqlite:${file}`];
  const dry = await cli([...args, "--dry-run", "--json"]);
  expect(JSON.parse(dry.out)).toMatchObject({ from: 0, created: true, dryRun: true });
  expect(existsSync(file)).toBe(false);
  const first = await cli(args);
  expect(first.out).toMatch(
    /^the schema went from 0 to \d+, in a store made for it\n +1 .* applied\n/,
  );
  const second = await cli([...args, "--json"]);
  expect(JSON.parse(second.out)).toMatchObject({
    store: `sqlite:${file}`,
    created: false,
    dryRun: false,
    steps: [],
  });
});

test("store status shows a store, and says with 5 when no server may use it", async () => {
  const { file, flags } = await madeStore();
  const good = await cli(["store", "status", ...flags, "--json"]);
  expect(good.exitCode).toBe(0);
  expect(JSON.parse(good.out)).toMatchObject({
    backend: "sqlite",
    tags: 0,
    revision: "0",
    fenced: "",
  });
  const copy = path.join(path.dirname(file), "copy.db");
  copyFileSync(file, copy);
  const bad = await cli(["store", "status", "--store-url", `sqlite:${copy}`]);
  expect(bad.exitCode).toBe(5);
  expect(bad.out).toMatch(/^grants +no: /m);
  expect(bad.err).toContain("UNHEALTHY");
});

test("a store that was set back grants nothing until it is accepted with a gap", async () => {
  const { folder, file, flags } = await madeStore();
  const before = await served(["serve", ...flags]);
  await cli(["tag", "create", "a"], on(before));
  await before.stop();
  const backup = path.join(folder, "backup");
  mkdirSync(backup);
  copyFileSync(file, path.join(backup, "idmint.db"));

  const during = await served(["serve", ...flags]);
  expect((await cli(["id", "next", "a", "-n", "5000"], on(during))).exitCode).toBe(0);
  await during.stop();
  for (const end of ["", "-wal", "-shm"]) rmSync(`${file}${end}`, { force: true });
  copyFileSync(path.join(backup, "idmint.db"), file);

  const after = await served(["serve", ...flags]);
  const refused = await cli(["id", "next", "a"], on(after));
  expect([refused.exitCode, refused.out]).toEqual([1, ""]);
  expect(refused.err).toContain("STORE_EPOCH_CHANGED");
  expect((await cli(["status"], on(after))).exitCode).toBe(5);

  const withoutGap = await cli(["store", "accept", ...flags]);
  expect([withoutGap.exitCode, withoutGap.out]).toEqual([2, ""]);
  const accepted = await cli(["store", "accept", "--gap", "10000", "--yes", ...flags]);
  expect(accepted.out).toBe("accepted: the floors of 1 tags were raised by 10000\n");
  await expect
    .poll(async () => (await cli(["id", "next", "a"], on(after))).out, { timeout: 5_000 })
    .toBe("10001\n");
  // Health follows within a second.
  await expect
    .poll(async () => (await cli(["status"], on(after))).exitCode, { timeout: 5_000 })
    .toBe(0);
});

test("the first signal lets a call finish, the second one ends the server at once", async () => {
  const { file, flags } = await madeStore();
  const server = await served(["serve", ...flags, "--drain-time", "1min", "--log-level", "debug"]);
  const ended = new Promise<number | null>((resolve) => {
    server.child.once("close", resolve);
  });
  await cli(["tag", "create", "a"], on(server));
  const other = new DatabaseSync(file);
  other.exec("BEGIN IMMEDIATE");
  const call = cli(["id", "next", "a", "--timeout", "1m"], on(server));
  await expect.poll(() => server.words(), { timeout: 10_000 }).toContain("load-started");
  server.child.kill("SIGTERM");
  await expect.poll(() => server.words(), { timeout: 10_000 }).toContain("stopping: finishing");
  server.child.kill("SIGTERM");
  expect(await ended).toBe(1);
  other.close();
  expect(await call).toMatchObject({ exitCode: 4, out: "" });
});
