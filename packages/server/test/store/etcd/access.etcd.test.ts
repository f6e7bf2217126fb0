// Users and certificates of an etcd, and what of its settings a store cannot do without.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { selfSigned } from "@idmint/testkit";
import { EtcdCluster } from "@idmint/testkit/etcd";
import { granted, reasonOf, settingsOf } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import {
  type EtcdConfig,
  migrateStore,
  openStore,
  storeStatus,
} from "../../../src/store/open-store.ts";
import { etcdHarness } from "./harness.ts";
import { asRoot, enableAuth, toBase64 } from "./users.ts";

const DAY_MS = 86_400_000;

/** What opening a store fails with. */
async function refusalOf(config: EtcdConfig): Promise<{ reason: string; message: string }> {
  const error: unknown = await openStore(config).catch((thrown: unknown) => thrown);
  const { reason, message } = error as { reason: string; message: string };
  return { reason, message };
}

test("a user gets in with the right password, and with a role for the prefix", async () => {
  await using cluster = await EtcdCluster.start();
  const { config, gateway } = await etcdHarness({}, cluster);
  const user = { user: "idmint", password: "of-idmint" };
  const off = await refusalOf({ ...config, ...user });
  expect(off.reason).toBe("STORE_REFUSED");
  expect(off.message).toContain("enable its authentication, or take store.user away");
  await enableAuth(gateway, config.prefix);
  const cases = [
    [{}, "it wants a user: set store.user"],
    [{ ...user, password: "wrong" }, "check store.user, and the password"],
    [{ user: "nobody", password: "wrong" }, "check store.user, and the password"],
    [{ user: "other", password: "of-other" }, "give the user a role"],
  ] as const;
  for (const [more, text] of cases) {
    const { reason, message } = await refusalOf({ ...config, ...more });
    expect(reason).toBe("STORE_REFUSED");
    expect(message).toContain(text);
    expect(message).not.toMatch(/wrong|of-other/u);
  }
  const store = await openStore({ ...config, ...user });
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  // Tokens are in the memory of a member.
  const [member] = cluster.members;
  await member?.kill();
  await member?.spawn();
  expect((await granted(store, "t")).base).toBe(11n);
  await store.close();
});

test("a store that is open says what became of its user, and goes on when that is mended", async () => {
  await using cluster = await EtcdCluster.start();
  const { config, gateway } = await etcdHarness({}, cluster);
  const nameless = await openStore(config);
  await nameless.createTag(settingsOf("t"));
  await granted(nameless, "t");
  await enableAuth(gateway, config.prefix);
  const store = await openStore({ ...config, user: "idmint", password: "of-idmint" });
  expect((await granted(store, "t")).base).toBe(11n);
  const password = (text: string) =>
    asRoot(cluster, "auth/user/changepw", { name: "idmint", password: text });
  const takes = (its: string) => ({ role: "idmint", key: toBase64(config.prefix), range_end: its });
  const end = toBase64(`${config.prefix.slice(0, -1)}0`);
  const perm = { permType: "READWRITE", key: toBase64(config.prefix), range_end: end };
  const cases = [
    [nameless, async () => undefined, /user name is empty.*set store\.user/u],
    [
      store,
      () => password("another"),
      /authentication failed.*check store\.user, and the password/u,
    ],
    [store, () => password("of-idmint"), undefined],
    [
      store,
      () => asRoot(cluster, "auth/role/revoke", takes(end)),
      /permission denied.*give the user a role/u,
    ],
    [store, () => asRoot(cluster, "auth/role/grant", { name: "idmint", perm }), undefined],
  ] as const;
  for (const [its, change, words] of cases) {
    await change();
    const poll = { since: 0n, watched: [], limit: 1 };
    for (const ask of [() => granted(its, "t"), () => its.changes(poll)]) {
      if (words === undefined) await ask();
      else {
        await expect(ask()).rejects.toMatchObject({
          reason: "STORE_UNAVAILABLE",
          metadata: { refusal: "true" },
          message: expect.stringMatching(words) as string,
        });
      }
    }
  }
  await Promise.all([nameless.close(), store.close()]);
});

test("a role that may only read is named by a status, and writes nothing", async () => {
  await using cluster = await EtcdCluster.start();
  const { config, gateway } = await etcdHarness({}, cluster);
  await enableAuth(gateway, config.prefix);
  const user = { user: "idmint", password: "of-idmint" };
  expect((await storeStatus({ ...config, ...user })).findings).toEqual([]);
  const key = toBase64(config.prefix);
  const end = toBase64(`${config.prefix.slice(0, -1)}0`);
  await asRoot(cluster, "auth/role/revoke", { role: "idmint", key, range_end: end });
  const perm = { permType: "READ", key, range_end: end };
  await asRoot(cluster, "auth/role/grant", { name: "idmint", perm });
  expect((await storeStatus({ ...config, ...user })).findings).toEqual([
    {
      name: "rights",
      isFatal: true,
      found: expect.stringContaining("permission denied") as string,
      fix: expect.stringContaining("give the user a role") as string,
    },
  ]);
});

interface Keys {
  readonly folder: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly otherFile: string;
}

async function withKeys(work: (keys: Keys) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-keys-"));
  const [certFile, keyFile, otherFile] = ["cert", "key", "other"].map((name) =>
    path.join(folder, `${name}.pem`),
  ) as [string, string, string];
  const { cert, key } = selfSigned("localhost");
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  writeFileSync(otherFile, selfSigned("localhost").cert);
  try {
    await work({ folder, certFile, keyFile, otherFile });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("with TLS both sides show their certificates, and a wrong one is told", async () => {
  await withKeys(async ({ folder, certFile, keyFile, otherFile }) => {
    const files = [`--cert-file=${certFile}`, `--key-file=${keyFile}`];
    const args = [...files, "--client-cert-auth", `--trusted-ca-file=${certFile}`];
    await using cluster = await EtcdCluster.start({ args, tls: true });
    const [member] = cluster.members;
    const config: EtcdConfig = {
      backend: "etcd",
      hosts: [`localhost:${member?.place.clientPort}`],
      prefix: "/tls/",
      tls: { caFile: certFile, certFile, keyFile },
      timeoutMs: 10_000,
      allowUnsafe: [],
    };
    await migrateStore(config, { dryRun: false });
    const store = await openStore(config);
    await store.createTag(settingsOf("t"));
    expect((await granted(store, "t")).base).toBe(1n);
    await store.close();
    const short = { ...config, timeoutMs: 1_500 };
    const { tls: _, ...plain } = short;
    for (const [wrong, text] of [
      [{ ...short, tls: { caFile: otherFile, certFile, keyFile } }, "check store.tls_ca_file"],
      [{ ...short, tls: { certFile, keyFile } }, "check store.tls_ca_file"],
      [{ ...short, tls: { caFile: path.join(folder, "none") } }, "store.tls_ca_file"],
      [{ ...short, tls: { caFile: certFile, certFile, keyFile: otherFile } }, "belong together"],
      [{ ...short, hosts: [`127.0.0.1:${member?.place.clientPort}`] }, "check store.tls_ca_file"],
    ] as const) {
      const { reason, message } = await refusalOf(wrong);
      expect([reason, message]).toEqual(["STORE_REFUSED", expect.stringContaining(text)]);
    }
    // etcd only closes the connection.
    expect((await refusalOf({ ...short, tls: { caFile: certFile } })).reason).toMatch(/^STORE_/u);
    expect((await refusalOf(plain)).reason).toMatch(/^STORE_/u);
  });
});

test("an etcd that keeps all revisions is refused after a day, until it compacts", async () => {
  await using cluster = await EtcdCluster.start();
  const { config, gateway } = await etcdHarness({}, cluster);
  const key = `${config.prefix}history`;
  const store = await openStore(config);
  await store.createTag(settingsOf("t"));
  await store.close();
  const [mark] = await gateway.under(key);
  const young = JSON.parse(mark?.value ?? "{}") as { revision: string; at_ms: string };
  expect(Math.abs(Number(young.at_ms) - Date.now())).toBeLessThan(60_000);
  await gateway.put(key, JSON.stringify({ ...young, at_ms: String(Date.now() - 2 * DAY_MS) }));
  const refused = await refusalOf(config);
  expect(refused.reason).toBe("STORE_UNSAFE");
  expect(refused.message).toContain("--auto-compaction-retention");
  expect((await storeStatus(config)).unsafe).toEqual(["auto_compaction"]);
  await (await openStore({ ...config, allowUnsafe: ["auto_compaction"] })).close();
  await gateway.compact(await gateway.revision());
  await (await openStore(config)).close();
  expect((await storeStatus(config)).unsafe).toEqual([]);
  // The next revision to look for is the present one.
  const [next] = await gateway.under(key);
  const { revision } = JSON.parse(next?.value ?? "{}") as { revision: string };
  expect(Number(revision)).toBeGreaterThan(Number(young.revision));
});

test("a cluster without a store is not made one by opening it", async () => {
  const { config } = await etcdHarness();
  const other = { ...config, prefix: `${config.prefix}other/` };
  expect(await reasonOf(openStore(other))).toBe("SCHEMA_MISMATCH");
  expect(await migrateStore(other, { dryRun: true })).toMatchObject({ from: 0, to: 1 });
  expect(await reasonOf(openStore(other))).toBe("SCHEMA_MISMATCH");
  expect((await storeStatus(other)).schemaVersion).toBe(0);
});

test("a second migration finds nothing to do, and another schema is refused", async () => {
  const { config, gateway } = await etcdHarness();
  const store = await openStore(config);
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  const report = await migrateStore(config, { dryRun: false });
  expect(report).toEqual({ from: 1, to: 1, steps: [], created: false });
  expect((await granted(store, "t")).base).toBe(11n);
  await store.close();
  const key = `${config.prefix}schema`;
  const [schema] = await gateway.under(key);
  const applied = JSON.parse(schema?.value ?? "[]") as object[];
  await gateway.put(key, JSON.stringify([...applied, { number: 99, checksum: "x", worksFrom: 2 }]));
  expect(await reasonOf(openStore(config))).toBe("SCHEMA_MISMATCH");
  await gateway.put(key, JSON.stringify([{ number: 1, checksum: "x" }]));
  expect(await reasonOf(migrateStore(config, { dryRun: false }))).toBe("SCHEMA_MISMATCH");
});

test("a configuration that cannot be meant is refused by its field", async () => {
  const { config } = await etcdHarness();
  const [host = ""] = config.hosts;
  const many = Array.from({ length: 17 }, (_, i) => `h${i}:1`);
  for (const [more, field] of [
    [{ hosts: [] }, "url"],
    [{ hosts: [host, host] }, "url"],
    [{ hosts: many }, "url"],
    [{ hosts: ["localhost"] }, "url"],
    [{ hosts: ["localhost:0"] }, "url"],
    [{ prefix: "/" }, "url"],
    [{ prefix: "/no slash" }, "url"],
    [{ user: "me" }, "user"],
    [{ password: "secret" }, "user"],
    [{ tls: { certFile: "a" } }, "tls_cert_file"],
    [{ timeoutMs: 1 }, "timeout"],
    [{ allowUnsafe: ["everything"] }, "allow_unsafe"],
  ] as const) {
    await expect(openStore({ ...config, ...more })).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
      violations: [expect.objectContaining({ field })],
    });
  }
});
