// The Redis of the tests does what faults need, and does not outlive them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { until } from "../../src/fleet/until.ts";
import { RedisServer, sharedRedisUrl } from "../../src/redis/index.ts";

test("data come back after a stop with a snapshot, and not after a kill without one", async () => {
  await using server = await RedisServer.start({ settings: { save: "3600 1" } });
  const { port } = server;
  await server.command("SET", "a", "1");
  await server.stop();
  await server.start();
  expect(server.port).toBe(port);
  expect(await server.command("GET", "a")).toBe("1");
  await server.command("SET", "a", "2");
  await server.kill();
  await server.start();
  expect(await server.command("GET", "a")).toBe("1");
  await server.kill();
  server.wipe();
  await server.start();
  expect(await server.command("GET", "a")).toBeNull();
});

test("older data can be put back", async () => {
  await using server = await RedisServer.start({ settings: { appendonly: "yes" } });
  await server.command("INCR", "n");
  await server.stop();
  const old = server.copyData();
  await server.start();
  await server.command("INCR", "n");
  await server.kill();
  server.restore(old);
  await server.start({ maxmemory: "64mb" });
  expect(await server.command("GET", "n")).toBe("1");
  expect(await server.command("CONFIG", "GET", "maxmemory")).toEqual(["maxmemory", "67108864"]);
});

test("a replica has the data and can be promoted while its master is paused", async () => {
  await using master = await RedisServer.start();
  await using replica = await RedisServer.start();
  await master.command("SET", "a", "1");
  await replica.follow(master);
  expect(await replica.command("GET", "a")).toBe("1");
  await expect(replica.command("SET", "a", "2")).rejects.toThrow("READONLY");
  master.pause();
  await replica.promote();
  expect(await replica.command("SET", "a", "2")).toBe("OK");
  master.resume();
  expect(await master.command("GET", "a")).toBe("1");
});

test("a server with a password starts, and one with a wrong setting says why it does not", async () => {
  await using server = await RedisServer.start({ settings: { requirepass: "hidden" } });
  expect(await server.command("PING")).toBe("PONG");
  await expect(RedisServer.start({ settings: { maxmemory: "lots" } })).rejects.toThrow("maxmemory");
});

test("a server ends, and its files with it, when the process that started it is killed", async () => {
  const script = path.join(import.meta.dirname, "parent-child.ts");
  const parent = spawn(process.execPath, ["-C", "idmint-source", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [text] = (await once(parent.stdout.setEncoding("utf8"), "data")) as [string];
  const [pid = "", folder = ""] = text.trim().split(" ");
  process.kill(Number(pid), 0);
  // Even a paused one.
  process.kill(Number(pid), "SIGSTOP");
  parent.kill("SIGKILL");
  await until("its folder is gone", () => !existsSync(folder) && !existsSync(`${folder}.conf`));
  expect(() => process.kill(Number(pid), 0)).toThrow("ESRCH");
});

test("the run shares one server", async () => {
  expect(await sharedRedisUrl()).toBe(await sharedRedisUrl());
});
