import { randomUUID } from "node:crypto";
import { cpSync } from "node:fs";
import type { Store } from "@idmint/core/server";
import { type EtcdCluster, EtcdGateway, sharedEtcd } from "@idmint/testkit/etcd";
import type { StoreHarness } from "@idmint/testkit/store-suite";
import { TcpProxy } from "@idmint/testkit/tcp-proxy";
import { type EtcdConfig, migrateStore, openStore } from "../../../src/store/open-store.ts";

const DAY_MS = 86_400_000;

/** A fresh store below a prefix of its own. */
export interface EtcdHarness extends StoreHarness {
  readonly config: EtcdConfig;
  /** What the tests look at and change by hand. */
  readonly gateway: EtcdGateway;
}

/** `cluster`: by default the one that the run shares. */
export async function etcdHarness(
  more: Partial<EtcdConfig> = {},
  cluster?: EtcdCluster,
): Promise<EtcdHarness> {
  const hosts = (cluster?.hosts ?? (await sharedEtcd())).split(",");
  const prefix = `/test-${randomUUID()}/`;
  const config: EtcdConfig = {
    backend: "etcd",
    hosts,
    prefix,
    // A machine that is busy with other tests takes its time.
    timeoutMs: 10_000,
    allowUnsafe: [],
    ...more,
  };
  await migrateStore(config, { dryRun: false });
  const gateway = cluster?.gateway ?? new EtcdGateway(hosts[0] ?? "");
  return {
    config,
    gateway,
    open: async (): Promise<Store> => openStore(config),
    shiftPeriods: async (days) => shiftPeriods(gateway, prefix, days),
    passWorkers: async (ms) => passWorkers(gateway, prefix, ms),
    openCut: async () => openCut(config),
    keep: async () => keepKeys(gateway, prefix),
    keepsLedger: false,
    remove: async () => gateway.removeUnder(prefix),
  };
}

type Row = Record<string, string>;

/** Changes columns of a tag's key and keeps its version. */
export async function setByHand(
  { gateway, config }: EtcdHarness,
  tag: string,
  columns: Record<string, string>,
): Promise<void> {
  const key = `${config.prefix}tag/${tag}`;
  const [row] = await gateway.under(key);
  const its = JSON.parse(row?.value ?? "{}") as Row;
  await gateway.put(key, JSON.stringify({ ...its, ...columns }));
}

function moved(start: string, days: number): string {
  return new Date(Date.parse(start) + days * DAY_MS).toISOString().slice(0, 10);
}

async function shiftPeriods(gateway: EtcdGateway, prefix: string, days: number): Promise<void> {
  const tags = await gateway.under(`${prefix}tag/`);
  const rows = tags.map(({ key, value }) => {
    const row = JSON.parse(value) as Row;
    const { period_start: start, other_periods: others } = row;
    if (start !== undefined) row["period_start"] = moved(start, days);
    if (others !== undefined) {
      const all = Object.entries(JSON.parse(others) as Row);
      const shifted = all.map(([day, lastId]) => [moved(day, days), lastId]);
      row["other_periods"] = JSON.stringify(Object.fromEntries(shifted));
    }
    return { key, value: JSON.stringify(row) };
  });
  const periods = await gateway.under(`${prefix}period/`);
  const shifted = periods.map(({ key, value }) => {
    const parts = key.split("/");
    const row = JSON.parse(value) as Row;
    parts.push(moved(parts.pop() ?? "", days));
    row["ended_at_ms"] = String(Number(row["ended_at_ms"]) + days * DAY_MS);
    return { key: parts.join("/"), value: JSON.stringify(row) };
  });
  const kept = new Set(shifted.map(({ key }) => key));
  const gone = periods.map(({ key }) => key).filter((key) => !kept.has(key));
  await gateway.change([...rows, ...shifted], gone);
}

async function passWorkers(gateway: EtcdGateway, prefix: string, ms: number): Promise<void> {
  const workers = await gateway.under(`${prefix}worker/`);
  const rows = workers.map(({ key, value }) => {
    const row = JSON.parse(value) as Row;
    for (const name of ["reserved_until_ms", "expires_at_ms"]) {
      row[name] = String(Number(row[name]) - ms);
    }
    return { key, value: JSON.stringify(row) };
  });
  await gateway.change(rows);
}

async function openCut(config: EtcdConfig): ReturnType<NonNullable<StoreHarness["openCut"]>> {
  const [host = ""] = config.hosts;
  const { hostname, port } = new URL(`http://${host}`);
  const target = { host: hostname, port: Number(port) };
  const line = await TcpProxy.start(target);
  const store = await openStore({ ...config, hosts: [`127.0.0.1:${line.port}`] });
  const close = async (): Promise<void> => {
    await store.close();
    await line.close();
  };
  return { store: { ...store, close }, cut: () => line.pointAt(target) };
}

/** All keys, which are written again; and as a server does that sees it, the store is marked. */
async function keepKeys(gateway: EtcdGateway, prefix: string): Promise<() => Promise<void>> {
  const kept = await gateway.under(prefix);
  return async () => {
    await gateway.removeUnder(prefix);
    await gateway.change(
      kept.map(({ key, value }) => {
        if (key !== `${prefix}store`) return { key, value };
        const record = JSON.parse(value) as Row;
        return { key, value: JSON.stringify({ ...record, wentBack: "it was put back" }) };
      }),
    );
  };
}

/** Copies the data of a cluster of one member, and answers how they are put back. */
export async function copyOf(cluster: EtcdCluster): Promise<() => Promise<void>> {
  const [member] = cluster.members;
  if (member === undefined) throw new Error("no member");
  await member.kill();
  const copy = `${member.dataFolder}-copy`;
  cpSync(member.dataFolder, copy, { recursive: true });
  await cluster.startAll();
  return async () => {
    await member.kill();
    member.wipe();
    cpSync(copy, member.dataFolder, { recursive: true });
    await cluster.startAll();
  };
}
