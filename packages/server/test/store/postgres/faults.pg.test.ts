// A PostgreSQL that writes to the disk, and is killed, frozen, cut off and set wrong.
import type { Store } from "@idmint/core/server";
import { createServer, type Server, type Socket } from "node:net";
import { connect } from "node:net";
import { TestPostgres } from "@idmint/testkit/postgres";
import {
  assertDisjoint,
  granted,
  reasonOf,
  refusal,
  settingsOf,
  wish,
} from "@idmint/testkit/store-suite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openStore } from "../../../src/store/open-store.ts";
import { GrantChild, type Range, until } from "../children.ts";
import { type PostgresHarness, postgresHarness } from "../harness.ts";

let server: TestPostgres;

beforeAll(async () => {
  server = await TestPostgres.start({ durable: true });
});

afterAll(async () => {
  await server.close();
});

async function withStore(
  work: (store: Store, harness: PostgresHarness) => Promise<void>,
  more: Parameters<typeof postgresHarness>[0] = {},
): Promise<void> {
  const harness = await postgresHarness(
    { allowUnsafe: [], ...more },
    await server.createDatabase(),
  );
  const store = await harness.open();
  try {
    await store.createTag(settingsOf("t"));
    await work(store, harness);
  } finally {
    await store.close();
    await harness.remove();
  }
}

/** Tries until a grant succeeds; answers it, and after how long in milliseconds. */
async function firstGrant(store: Store): Promise<{ base: bigint; tookMs: number }> {
  const startedAt = performance.now();
  for (;;) {
    const grants = await store.grant([wish("t")]).catch(() => []);
    const [grant] = grants;
    if (grant?.outcome === "granted") {
      return { base: grant.base, tookMs: performance.now() - startedAt };
    }
    if (grant !== undefined) throw new Error(`not granted: ${JSON.stringify(grant)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test("processes on one database that crashes under them never get the same id", async () => {
  await withStore(async (store, { config }) => {
    const children = [0, 1].map(() => new GrantChild(config, "t"));
    for (const mode of ["immediate", "kill", "fast"] as const) {
      const before = children.map((child) => child.ranges.length);
      await until(() =>
        children.every((child, at) => child.ranges.length > (before[at] ?? 0) + 50),
      );
      await server.stop(mode);
      await server.start();
    }
    const before = children.map((child) => child.ranges.length);
    await until(() => children.every((child, at) => child.ranges.length > (before[at] ?? 0) + 50));
    await Promise.all(children.map((child) => child.kill()));
    const ranges: Range[] = children.flatMap((child) => child.ranges);
    const { base } = await firstGrant(store);
    assertDisjoint([...ranges, { from: base, to: base + 9n }]);
    for (const child of children) expect([...child.refused.keys()]).toEqual(["STORE_UNAVAILABLE"]);
  });
});

test("a server that is frozen fails grants in time, and grants again at once when it thaws", async () => {
  await withStore(
    async (store) => {
      await granted(store, "t");
      server.freeze();
      const waits: { reason: string; tookMs: number }[] = [];
      try {
        const frozenAt = performance.now();
        const works: Promise<void>[] = [];
        while (performance.now() - frozenAt < 8_000) {
          const startedAt = performance.now();
          const note = async (): Promise<void> => {
            const reason = await reasonOf(store.grant([wish("t")]));
            waits.push({ reason, tookMs: performance.now() - startedAt });
          };
          works.push(note());
          await new Promise((resolve) => setTimeout(resolve, 200));
        }
        await Promise.all(works);
      } finally {
        server.thaw();
      }
      expect(new Set(waits.map(({ reason }) => reason))).toEqual(new Set(["STORE_UNAVAILABLE"]));
      expect(Math.max(...waits.map(({ tookMs }) => tookMs))).toBeLessThan(2_500);
      const { tookMs, base } = await firstGrant(store);
      expect(tookMs).toBeLessThan(2_000);
      expect(base).toBeGreaterThan(10n);
    },
    { timeoutMs: 1_500, connectTimeoutMs: 1_000 },
  );
});

test("a server that was restarted serves the next grants", async () => {
  await withStore(async (store) => {
    await granted(store, "t");
    await server.stop("fast");
    expect(await reasonOf(store.grant([wish("t")]))).toBe("STORE_UNAVAILABLE");
    await server.start();
    const { tookMs } = await firstGrant(store);
    expect(tookMs).toBeLessThan(2_000);
  });
});

test("a setting that turns unsafe while the server runs stops the grants, until it is mended", async () => {
  await withStore(async (store) => {
    await granted(store, "t");
    for (const name of ["fsync", "full_page_writes"]) {
      await server.query(`ALTER SYSTEM SET ${name} = off`);
      await server.query("SELECT pg_reload_conf()");
      await until(async () => (await reasonOrNone(store)) === "STORE_UNSAFE");
      const poll = store.changes({ since: 0n, watched: [], limit: 1 });
      expect(await reasonOf(poll)).toBe("STORE_UNSAFE");
      await server.query(`ALTER SYSTEM RESET ${name}`);
      await server.query("SELECT pg_reload_conf()");
      await until(async () => (await reasonOrNone(store)) === "");
    }
  });
});

async function reasonOrNone(store: Store): Promise<string> {
  return store.grant([wish("t")]).then(
    () => "",
    (error: unknown) => (error as { reason: string }).reason,
  );
}

async function withoutStandby(work: () => Promise<void>): Promise<void> {
  // Commits now wait for a standby that does not exist.
  await server.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  await server.query("SELECT pg_reload_conf()");
  try {
    await until(async () => {
      const [row] = await server.query(
        "SELECT current_setting('synchronous_standby_names') AS now",
      );
      return row?.["now"] === "nobody";
    });
    await work();
  } finally {
    await server.query("ALTER SYSTEM RESET synchronous_standby_names");
    await server.query("SELECT pg_reload_conf()");
  }
}

test("a commit that waits for its standby is given up in time, and what it took is burnt", async () => {
  await withStore(
    async (store) => {
      await withoutStandby(async () => {
        const startedAt = performance.now();
        expect(await reasonOf(store.grant([wish("t")]))).toBe("STORE_UNAVAILABLE");
        expect(performance.now() - startedAt).toBeLessThan(2_000);
      });
      const { base } = await firstGrant(store);
      expect(base).toBe(11n);
    },
    { timeoutMs: 1_000 },
  );
});

test("a commit whose wait for its standby is cancelled is not granted, though PostgreSQL says it succeeded", async () => {
  await withStore(async (store, { database }) => {
    await withoutStandby(async () => {
      const work = reasonOf(store.grant([wish("t")]));
      await until(async () => {
        const rows = await server.query(
          `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = '${database.name}'`,
        );
        return rows.length > 0;
      });
      expect(await work).toBe("STORE_UNAVAILABLE");
    });
    expect((await firstGrant(store)).base).toBe(11n);
  });
});

/** Passes bytes on to the server, until the answer to a grant is to be cut off. */
async function cutter(port: number): Promise<{ proxy: Server; cutNextAnswer: () => void }> {
  let isCutting = false;
  const proxy = createServer((client: Socket) => {
    const upstream = connect(port, "127.0.0.1");
    for (const socket of [client, upstream]) socket.on("error", () => undefined);
    client.pipe(upstream);
    upstream.on("data", (bytes) => {
      if (isCutting) {
        isCutting = false;
        client.destroy();
        upstream.destroy();
      } else client.write(bytes);
    });
    upstream.on("close", () => client.destroy());
    client.on("close", () => upstream.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return { proxy, cutNextAnswer: () => (isCutting = true) };
}

test("a connection that is cut before the answer burns the range", async () => {
  await withStore(async (_store, { config }) => {
    const { proxy, cutNextAnswer } = await cutter(server.port);
    const url = new URL(config.url);
    url.port = String((proxy.address() as { port: number }).port);
    const store = await openStore({ ...config, url: url.href });
    expect((await granted(store, "t")).base).toBe(1n);
    cutNextAnswer();
    expect(await reasonOf(store.grant([wish("t")]))).toBe("STORE_UNAVAILABLE");
    // Whether the cut one was carried out is not known; if it was, its ids are nobody's.
    expect((await granted(store, "t")).base).toBe(21n);
    await store.close();
    proxy.close();
  });
});

test("an answer that never comes is given up in time", async () => {
  await withStore(async (_store, { config }) => {
    const silent = createServer((socket) => socket.on("error", () => undefined));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const url = new URL(config.url);
    url.port = String((silent.address() as { port: number }).port);
    const startedAt = performance.now();
    const work = openStore({ ...config, url: url.href, timeoutMs: 800, connectTimeoutMs: 500 });
    expect(await reasonOf(work)).toBe("STORE_UNAVAILABLE");
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    silent.close();
  });
});

test("a standby that recovers is unavailable, not unsafe", async () => {
  const standby = await TestPostgres.start({ durable: true, standby: true });
  try {
    const work = openStore({ backend: "postgres", url: standby.url(), allowUnsafe: [] });
    expect(await reasonOf(work)).toBe("STORE_UNAVAILABLE");
  } finally {
    await standby.close();
  }
});

test("a server promoted to another timeline is refused until it is accepted", async () => {
  const own = await TestPostgres.start({ durable: true });
  try {
    const harness = await postgresHarness({ allowUnsafe: [] }, await own.createDatabase());
    const store = await harness.open();
    await store.createTag(settingsOf("t"));
    await granted(store, "t");
    await own.stop("fast");
    await own.start({ standby: true });
    await own.query("SELECT pg_promote()");
    await until(async () => (await refusalOrNone(store)) === "STORE_EPOCH_CHANGED");
    const fresh = await harness.open();
    expect(await refusal(fresh, "t")).toBe("STORE_EPOCH_CHANGED");
    await fresh.accept(100n);
    expect((await granted(fresh, "t")).base).toBe(111n);
    await fresh.close();
    await store.close();
  } finally {
    await own.close();
  }
});

async function refusalOrNone(store: Store): Promise<string> {
  const grants = await store.grant([wish("t")]).catch(() => []);
  const [grant] = grants;
  if (grant?.outcome === "granted") throw new Error("granted on another timeline");
  return grant?.outcome === "refused" ? grant.reason : "";
}
