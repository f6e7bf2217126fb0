// A connection by way of real Sentinels: it follows a majority of them, and says what is wrong where there is none.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { inspect } from "node:util";
import { selfSigned } from "@idmint/testkit";
import {
  freePort,
  MASTER,
  RedisServer,
  type RedisSettings,
  startSentinel,
} from "@idmint/testkit/redis";
import { afterEach, expect, test } from "vitest";
import { sentinelOptions } from "../../src/index.ts";
import { RedisNode, type RedisSource } from "../../src/redis/node.ts";
import { failure, sleep } from "../support.ts";

const closing: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of closing.splice(0).toReversed()) await each.close();
});

function closed<T extends { close(): Promise<void> }>(each: T): T {
  closing.push(each);
  return each;
}

async function redis(settings: RedisSettings = {}): Promise<RedisServer> {
  return closed(await RedisServer.start({ settings }));
}

/** Sentinels, each of which watches one Redis. They know nothing of each other if their Redis servers differ. */
async function sentinelsOf(
  ...watched: readonly (RedisServer | "none")[]
): Promise<readonly RedisServer[]> {
  return Promise.all(
    watched.map(async (each) => {
      const sentinel = closed(await startSentinel(each === "none" ? 1 : each.port));
      if (each === "none") await sentinel.command("SENTINEL", "REMOVE", MASTER);
      return sentinel;
    }),
  );
}

function urlOf(sentinels: readonly { readonly port: number }[]): string {
  return `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${MASTER}`;
}

function nodeAt(source: RedisSource): RedisNode {
  return closed(new RedisNode(source));
}

/** The port of the Redis that answers. */
async function portOf(node: RedisNode): Promise<number> {
  const info = await node.run("INFO", (client) => client.info("server"), { timeoutMs: 2_000 });
  return Number(/^tcp_port:(\d+)/m.exec(info)?.[1]);
}

/** Why the node has no connection, once it knows. */
async function whyNot(node: RedisNode): Promise<string> {
  for (;;) {
    const { message } = await failure(portOf(node));
    if (message.includes("(")) return message;
    await sleep(20);
  }
}

async function reaches(node: RedisNode, port: number): Promise<void> {
  let reached = 0;
  const end = performance.now() + 10_000;
  while (reached !== port) {
    if (performance.now() > end) throw new Error(`answered by ${reached}, not by ${port}`);
    reached = await portOf(node).catch(() => 0);
    await sleep(20);
  }
}

test("one Sentinel that names another Redis is outvoted, also when it is the first", async () => {
  const [right, other] = [await redis(), await redis()];
  const sentinels = await sentinelsOf(other, right, right);
  const node = nodeAt(urlOf(sentinels));
  await reaches(node, right.port);
  expect(node.name).toBe(`sentinel ${MASTER}`);
  // One that is gone is not missed either.
  await sentinels[0]!.kill();
  await reaches(nodeAt(urlOf(sentinels)), right.port);
});

test("without a majority nothing is asked of anybody; with one again it goes on by itself", async () => {
  const [one, two] = [await redis(), await redis()];
  const sentinels = await sentinelsOf(one, two, "none");
  const node = nodeAt(urlOf(sentinels));
  const why = await whyNot(node);
  expect(why).toContain(`its Sentinels disagree about the master "${MASTER}"`);
  expect(why).toContain(`127.0.0.1:${sentinels[0]!.port}: the master is 127.0.0.1:${one.port}`);
  expect(why).toContain(`127.0.0.1:${sentinels[1]!.port}: the master is 127.0.0.1:${two.port}`);
  expect(why).toContain(`127.0.0.1:${sentinels[2]!.port}: no master of this name`);
  await sentinels[2]!.command("SENTINEL", "MONITOR", MASTER, "127.0.0.1", two.port, 2);
  await reaches(node, two.port);
});

test("two of three Sentinels gone: no majority, and the connection that is there stays", async () => {
  const master = await redis();
  const sentinels = await sentinelsOf(master, master, master);
  const node = nodeAt(urlOf(sentinels));
  await reaches(node, master.port);
  await sentinels[0]!.kill();
  await sentinels[1]!.kill();
  // Longer than the Sentinels are left alone.
  await sleep(2_500);
  expect(await portOf(node)).toBe(master.port);
  const late = nodeAt(urlOf(sentinels));
  const why = await whyNot(late);
  expect(why).toContain(`no majority of its Sentinels names the master "${MASTER}"`);
  expect(why).toContain(`127.0.0.1:${sentinels[1]!.port}: connect ECONNREFUSED`);
});

test("a master that still answers is left as soon as a majority names another one", async () => {
  const [old, promoted] = [await redis(), await redis()];
  const sentinels = await sentinelsOf(old, old, old);
  const node = nodeAt(urlOf(sentinels));
  await reaches(node, old.port);
  for (const sentinel of sentinels.slice(1)) {
    await sentinel.command("SENTINEL", "REMOVE", MASTER);
    await sentinel.command("SENTINEL", "MONITOR", MASTER, "127.0.0.1", promoted.port, 2);
  }
  await reaches(node, promoted.port);
});

test("a dead master and a replica are said to be what they are", async () => {
  const [master, other] = [await redis(), await redis()];
  await other.follow(master);
  // The Sentinels may not put the replica right before it was looked at.
  const ofReplica = await Promise.all(
    [1, 2, 3].map(async () => closed(await startSentinel(other.port))),
  );
  const node = nodeAt(urlOf(ofReplica));
  expect(await whyNot(node)).toMatch(
    new RegExp(`its Sentinels name 127.0.0.1:${other.port}, which is a replica`),
  );
  const sentinels = await sentinelsOf(master, master, master);
  await master.kill();
  const late = nodeAt(urlOf(sentinels));
  expect(await whyNot(late)).toContain(`connect ECONNREFUSED 127.0.0.1:${master.port}`);
  await master.start();
  await reaches(late, master.port);
});

test("a Redis given as a Sentinel, and a name that no Sentinel knows, are refused with the way out", async () => {
  const master = await redis();
  const wrong = await whyNot(nodeAt(urlOf([master])));
  expect(wrong).toContain(`127.0.0.1:${master.port}: this is a Redis and not a Sentinel`);
  expect(wrong).toContain("write redis://host:port");
  const sentinels = await sentinelsOf("none", "none", "none");
  expect(await whyNot(nodeAt(urlOf(sentinels)))).toContain("no master of this name");
});

test("Sentinels have a password of their own, and no error shows one", async () => {
  const master = await redis({ requirepass: "s3cret-redis" });
  const settings = {
    requirepass: "s3cret-watch",
    user: "watcher on >s3cret-user -@all +auth +hello +client +subscribe +sentinel|get-master-addr-by-name &+switch-master",
    "sentinel auth-pass": `${MASTER} s3cret-redis`,
  };
  const sentinel = closed(await startSentinel(master.port, { settings }));
  const url = urlOf([sentinel]);
  const right = { password: "s3cret-redis", sentinelPassword: "s3cret-watch" };
  await reaches(nodeAt(sentinelOptions(url, right)), master.port);
  const other = { ...right, sentinelUser: "watcher", sentinelPassword: "s3cret-user" };
  await reaches(nodeAt(sentinelOptions(url, other)), master.port);
  for (const [secrets, why] of [
    [{ password: "s3cret-redis" }, "given for Sentinels (NOAUTH"],
    [{ ...right, sentinelPassword: "s3cret-wrong" }, "given for Sentinels (WRONGPASS"],
    [{ ...right, sentinelUser: "nobody" }, "given for Sentinels (WRONGPASS"],
    [{ ...right, password: "s3cret-wrong" }, "(WRONGPASS"],
  ] as const) {
    const node = nodeAt(sentinelOptions(url, secrets));
    expect(await whyNot(node)).toContain(why);
    const error = await failure(portOf(node));
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain("s3cret");
  }
});

test("rediss+sentinel asks the Sentinels and the Redis by TLS", async () => {
  const { cert, key } = selfSigned("localhost");
  const folder = await mkdtemp(path.join(tmpdir(), "idmint-tls-"));
  closing.push({ close: () => rm(folder, { recursive: true }) });
  const [certFile, keyFile] = [path.join(folder, "cert.pem"), path.join(folder, "key.pem")];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  const tls = {
    "tls-cert-file": certFile,
    "tls-key-file": keyFile,
    "tls-ca-cert-file": certFile,
    "tls-auth-clients": "no",
    "tls-replication": "yes",
  };
  const [masterPort, sentinelPort] = [await freePort(), await freePort()];
  const master = await redis({ ...tls, "tls-port": String(masterPort) });
  const settings = { ...tls, "tls-port": String(sentinelPort) };
  closed(await startSentinel(masterPort, { settings }));
  const options = sentinelOptions(`rediss+sentinel://127.0.0.1:${sentinelPort}/${MASTER}`);
  const trusted = { ca: cert, servername: "localhost" };
  const trusting = { ...options, tls: trusted, sentinelTLS: trusted };
  await reaches(nodeAt(trusting), master.port);
  // Whom nobody vouches for is not asked anything.
  expect(await whyNot(nodeAt(options))).toContain("self-signed certificate");
  expect(await whyNot(nodeAt({ ...options, sentinelTLS: trusted }))).toContain(
    "self-signed certificate",
  );
});

test("a command in flight is not sent again to the next master", async () => {
  const [old, promoted] = [await redis(), await redis()];
  const sentinels = await sentinelsOf(old, old, old);
  const node = nodeAt(urlOf(sentinels));
  await reaches(node, old.port);
  old.pause();
  const lost = failure(node.run("INCR", (client) => client.incr("n"), { timeoutMs: 20_000 }));
  for (const sentinel of sentinels) {
    await sentinel.command("SENTINEL", "REMOVE", MASTER);
    await sentinel.command("SENTINEL", "MONITOR", MASTER, "127.0.0.1", promoted.port, 2);
  }
  expect((await lost).reason).toBe("NODE_UNAVAILABLE");
  await reaches(node, promoted.port);
  expect(await promoted.command("GET", "n")).toBeNull();
  old.resume();
});

test("nothing is left behind when it is closed, also while it tries", async () => {
  const master = await redis();
  const sentinels = await sentinelsOf(master, master, master);
  const node = nodeAt(urlOf(sentinels));
  await reaches(node, master.port);
  const trying = nodeAt(`redis+sentinel://127.0.0.1:1,127.0.0.1:${sentinels[0]!.port}/${MASTER}`);
  await whyNot(trying);
  // Each has one connection, which listens for a new master and asks.
  const clients = async (): Promise<number> => {
    const lists = sentinels.map((each) => each.command("CLIENT", "LIST"));
    const lines = (await Promise.all(lists)).join("\n").split("\n");
    return lines.filter((line) => line.includes(" sub=1 ")).length;
  };
  const come = async (count: number): Promise<void> => {
    const end = performance.now() + 5_000;
    for (let there = -1; there !== count; there = await clients()) {
      if (performance.now() > end) throw new Error(`${there} connections, not ${count}`);
      await sleep(20);
    }
  };
  await come(4);
  await Promise.all([node.close(), trying.close()]);
  await come(0);
});
