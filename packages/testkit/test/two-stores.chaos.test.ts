// Two stores behind one address, by turns and at random, under load.
import { mkdirSync, renameSync } from "node:fs";
import path from "node:path";
import { onTestFinished, test } from "vitest";
import { EtcdCluster } from "../src/etcd/index.ts";
import { TestPostgres } from "../src/postgres.ts";
import { TcpProxy } from "../src/tcp-proxy.ts";
import { isLong, ownPostgres, seededRandom, sqliteFile } from "./fleet-support.ts";
import { fillStores, turnToAndFro, type TwoStores, type Which } from "./two-stores.ts";

const ROUNDS = isLong ? 30 : 1;
const TIMEOUT_MS = 120_000 * ROUNDS;

/** Behind, at about the same ids, and further on. */
function firstOfOther(): bigint {
  const { below } = seededRandom();
  return BigInt([1, 50 + below(400), 100_000][below(3)] ?? 1);
}

async function rounds(make: () => Promise<TwoStores>): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    // oxlint-disable-next-line no-await-in-loop
    const stores = await make();
    // oxlint-disable-next-line no-await-in-loop
    await fillStores(stores, firstOfOther());
    // oxlint-disable-next-line no-await-in-loop
    await turnToAndFro(stores);
  }
}

async function proxyTo(port: number): Promise<TcpProxy> {
  const proxy = await TcpProxy.start({ host: "127.0.0.1", port });
  onTestFinished(() => proxy.close());
  return proxy;
}

test("PostgreSQL", { timeout: TIMEOUT_MS }, async () => {
  const [ours, other] = [await ownPostgres(), await TestPostgres.start({ isForeign: true })];
  onTestFinished(() => other.close());
  let count = 0;
  await rounds(async () => {
    const name = `round${count++}`;
    const [a, b] = [await ours.createDatabase(name), await other.createDatabase(name)];
    const proxy = await proxyTo(ours.port);
    const through = `postgres://postgres@127.0.0.1:${proxy.port}/${name}`;
    return {
      urls: { ours: a.url, other: b.url },
      storeUrls: [through, through, a.url],
      env: { IDMINT_ALLOW_UNSAFE_STORE: "fsync,full_page_writes" },
      pointAt: (which) =>
        proxy.pointAt({ host: "127.0.0.1", port: (which === "ours" ? ours : other).port }),
    };
  });
});

test("etcd", { timeout: TIMEOUT_MS }, async () => {
  const [ours, other] = [await EtcdCluster.start(), await EtcdCluster.start()];
  onTestFinished(async () => {
    await ours.close();
    await other.close();
  });
  let count = 0;
  await rounds(async () => {
    const prefix = `/round${count++}/`;
    const portOf = (which: Which): number =>
      Number((which === "ours" ? ours : other).hosts.split(":").at(-1));
    const proxy = await proxyTo(portOf("ours"));
    const urls = { ours: `etcd://${ours.hosts}${prefix}`, other: `etcd://${other.hosts}${prefix}` };
    const through = `etcd://127.0.0.1:${proxy.port}${prefix}`;
    return {
      urls,
      storeUrls: [through, through, urls.ours],
      env: { IDMINT_ALLOW_UNSAFE_STORE: "auto_compaction" },
      pointAt: (which) => proxy.pointAt({ host: "127.0.0.1", port: portOf(which) }),
    };
  });
});

/** Two folders of which one at a time lies where all servers look; it is moved as a whole, and for a moment none is there. */
async function foldersByTurns(): Promise<TwoStores> {
  const folder = path.dirname(await sqliteFile());
  const fileIn = (name: string): string => `sqlite:${path.join(folder, name, "idmint.db")}`;
  const here = path.join(folder, "here");
  for (const name of ["ours", "other"]) mkdirSync(path.join(folder, name));
  let present: string | undefined;
  return {
    urls: { ours: fileIn("ours"), other: fileIn("other") },
    storeUrls: [fileIn("here"), fileIn("here"), fileIn("here")],
    pointAt: (which) => {
      if (which === present) return;
      if (present !== undefined) renameSync(here, path.join(folder, present));
      renameSync(path.join(folder, which), here);
      present = which;
    },
  };
}

test("SQLite", { timeout: TIMEOUT_MS }, async () => {
  await rounds(foldersByTurns);
});
