import { inspect } from "node:util";
import { IdmintError } from "@idmint/core";
import { ASK_MS, MAX_NODES, MAX_TRAFFIC, type Store } from "@idmint/core/server";
import { TestSession } from "@idmint/testkit/postgres";
import {
  granted,
  nodeRenewalOf,
  reasonOf,
  refusal,
  settingsOf,
  noteOf,
  storeSuite,
  wish,
  tokenOf,
} from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { migrateStore, openStore, storeStatus } from "../../../src/store/open-store.ts";
import { emptied } from "./emptied.ts";
import { type PostgresHarness, postgresHarness } from "../harness.ts";

const ofSuite = async () => {
  const harness = await postgresHarness();
  return { ...harness, databases: [harness.database] };
};
storeSuite("postgres", emptied(ofSuite));

async function withStore(
  work: (store: Store, harness: PostgresHarness) => Promise<void>,
  more: Parameters<typeof postgresHarness>[0] = {},
): Promise<void> {
  const harness = await postgresHarness(more);
  const store = await harness.open();
  try {
    await store.createTag(settingsOf("t"));
    await work(store, harness);
  } finally {
    await store.close();
    await harness.remove();
  }
}

test("a database without the schema, with a newer one or another step is refused", async () => {
  await withStore(async (_store, { config, database }) => {
    await database.query("INSERT INTO idmint.migration VALUES (99, 'future', 'x', 99)");
    expect(await reasonOf(openStore(config))).toBe("SCHEMA_MISMATCH");
    expect((await storeStatus(config)).schemaIllness).toContain("upgrade idmint");
    expect(await reasonOf(migrateStore(config, { dryRun: false }))).toBe("SCHEMA_MISMATCH");
    await database.query("DELETE FROM idmint.migration WHERE number = 99");
    await database.query("UPDATE idmint.migration SET checksum = 'y'");
    expect(await reasonOf(openStore(config))).toBe("SCHEMA_MISMATCH");
    await database.query("DROP SCHEMA idmint CASCADE");
    expect(await reasonOf(openStore(config))).toBe("SCHEMA_MISMATCH");
    expect((await storeStatus(config)).schemaVersion).toBe(0);
    const report = await migrateStore(config, { dryRun: true });
    expect(report).toMatchObject({ from: 0, created: true });
    expect(await reasonOf(openStore(config))).toBe("SCHEMA_MISMATCH");
  });
});

test("migrations at once are made once, and the others find nothing to do", async () => {
  await withStore(async (_store, { config, database }) => {
    await database.query("DROP SCHEMA idmint CASCADE");
    const reports = await Promise.all(
      [1, 2, 3, 4].map(() => migrateStore(config, { dryRun: false })),
    );
    expect(reports.filter(({ created }) => created)).toHaveLength(1);
    expect(await database.query("SELECT count(*)::int AS stores FROM idmint.store")).toEqual([
      { stores: 1 },
    ]);
  });
});

test("a role that may only read, insert and update serves; it cannot migrate", async () => {
  await withStore(async (_store, { config, database }) => {
    const role = `serve_${database.name}`;
    await database.query(`CREATE ROLE ${role} LOGIN PASSWORD 'serve'`);
    await database.query(`GRANT USAGE ON SCHEMA idmint TO ${role}`);
    await database.query(`GRANT SELECT ON idmint.migration TO ${role}`);
    await database.query(`GRANT SELECT, UPDATE ON idmint.store TO ${role}`);
    await database.query(`GRANT SELECT, INSERT, UPDATE ON idmint.tag TO ${role}`);
    await database.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON idmint.period TO ${role}`);
    await database.query(`GRANT SELECT, INSERT, UPDATE ON idmint.worker TO ${role}`);
    await database.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON idmint.node TO ${role}`);
    await database.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON idmint.redis_mark TO ${role}`);
    await database.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON idmint.traffic TO ${role}`);
    await database.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON idmint.token TO ${role}`);
    await database.query(`GRANT SELECT, INSERT, DELETE ON idmint.audit TO ${role}`);
    await database.query(`GRANT SELECT, UPDATE ON idmint.access TO ${role}`);
    for (const table of ["ask", "claim", "claimant", "ledger", "ledger_forgotten"]) {
      await database.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON idmint.${table} TO ${role}`);
    }
    const url = new URL(config.url);
    url.username = role;
    url.password = "serve";
    const its = { ...config, url: url.href };
    const store = await openStore(its);
    await store.createTag(settingsOf("its"));
    const grant = await granted(store, "its");
    await store.giveBack([{ tag: "its", from: 5n, to: 10n, version: grant.version }]);
    await store.setTagState("its", "PAUSED", undefined);
    await store.accept(1n, undefined, noteOf("accept"));
    expect(await store.trimAudit({ kind: "change", beforeMs: 0, keep: 0, limit: 9 })).toBe(1);
    await store.recordLedger([], { keepForMs: 1, maxRows: 1 });
    expect((await store.findInLedger({ tag: "its", id: 1n })).forgotten).toBe(3n);
    await store.addToken(tokenOf("its"));
    expect(await store.removeToken("its")).toBe(true);
    expect((await store.changes({ since: 0n, watched: [], limit: 9 })).changed).toHaveLength(2);
    expect(await store.forgetNodes([{ part: "", id: "n", renewals: undefined }])).toBe(0);
    const mark = { tag: "its", generation: 1n, mark: 1n };
    expect(await store.exchangeMarks([mark], [])).toEqual([]);
    expect(await store.exchangeMarks([], [mark])).toEqual([mark]);
    const wish = { server: "n", weight: 1, isDraining: false, revision: 0n };
    expect((await store.setTraffic(wish)).revision).toBe(1n);
    await store.close();
    await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });
});

test("unsafe settings are refused unless they are allowed by name", async () => {
  await withStore(async (_store, { config, database }) => {
    const [row] = await database.query("SELECT current_setting('fsync') AS fsync");
    expect(row?.["fsync"]).toBe("off");
    const work = openStore({ ...config, allowUnsafe: ["full_page_writes"] });
    const error: unknown = await work.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ reason: "STORE_UNSAFE", metadata: { settings: "fsync" } });
    expect(await reasonOf(openStore({ ...config, allowUnsafe: [] }))).toBe("STORE_UNSAFE");
    expect((await storeStatus(config)).unsafe).toEqual(["fsync", "full_page_writes"]);
  });
});

test("commits wait for the disk whatever the role's default is, unless that is allowed by name", async () => {
  await withStore(async (_store, { config, database }) => {
    const name = `commit_${database.name}`;
    await database.query(`ALTER DATABASE "${database.name}" SET synchronous_commit = off`);
    const seen = async (allowUnsafe: readonly string[]): Promise<unknown> => {
      // What its own session says, through a row that a trigger writes within its transaction.
      const store = await openStore({ ...config, allowUnsafe, poolSize: 1 });
      await store.setTagState("t", "PAUSED", undefined);
      await store.setTagState("t", "ACTIVE", undefined);
      await store.close();
      return (await database.query("SELECT value FROM public.seen"))[0]?.["value"];
    };
    await database.query(`CREATE TABLE public.seen (value text);
      CREATE FUNCTION public.${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        DELETE FROM public.seen;
        INSERT INTO public.seen VALUES (concat_ws(' ', current_setting('synchronous_commit'), current_setting('jit')));
        RETURN NEW; END $$;
      CREATE TRIGGER seen AFTER UPDATE ON idmint.tag FOR EACH ROW EXECUTE FUNCTION public.${name}()`);
    // Without the compiler, which takes longer than a time-out for statements of microseconds.
    expect(await seen(config.allowUnsafe)).toBe("on off");
    expect(await seen([...config.allowUnsafe, "synchronous_commit"])).toBe("off off");
  });
});

test("a warning during a grant discards it", async () => {
  await withStore(async (store, { database }) => {
    await granted(store, "t");
    await database.query(`
      CREATE FUNCTION public.warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE WARNING 'canceling wait for synchronous replication'; RETURN NEW; END $$;
      CREATE TRIGGER warn AFTER UPDATE ON idmint.tag FOR EACH ROW EXECUTE FUNCTION public.warn()`);
    expect(await reasonOf(store.grant([wish("t")]))).toBe("STORE_UNAVAILABLE");
    expect(await reasonOf(store.setTagState("t", "PAUSED", undefined))).toBe("STORE_UNAVAILABLE");
    await database.query("DROP TRIGGER warn ON idmint.tag");
    // Both had happened, and neither was told: what was granted is burnt.
    await store.setTagState("t", "ACTIVE", undefined);
    expect((await granted(store, "t")).base).toBe(21n);
  });
});

/** Works while another session keeps the row of the tag "t" locked. */
async function whileLocked(url: string, work: () => Promise<void>): Promise<void> {
  const session = await TestSession.connect(url);
  try {
    await session.query("BEGIN; SELECT FROM idmint.tag WHERE name = 't' FOR UPDATE");
    await work();
  } finally {
    await session.close();
  }
}

test("a row that another session keeps locked fails the grant in time, and only that", async () => {
  await withStore(
    async (store, { database }) => {
      await store.createTag(settingsOf("free"));
      await whileLocked(database.url, async () => {
        const locked = reasonOf(store.grant([wish("t")]));
        expect((await granted(store, "free")).base).toBe(1n);
        expect(await locked).toBe("STORE_UNAVAILABLE");
      });
      expect((await granted(store, "t")).base).toBe(1n);
    },
    { timeoutMs: 1_500 },
  );
});

test("when every connection is busy, calls wait their turn and no longer than they may", async () => {
  const timeoutMs = 1_000;
  await withStore(
    async (store, { database }) => {
      await whileLocked(database.url, async () => {
        const startedAt = performance.now();
        const works = Array.from({ length: 8 }, () => reasonOf(store.grant([wish("t")])));
        expect(new Set(await Promise.all(works))).toEqual(new Set(["STORE_UNAVAILABLE"]));
        // Two by two, one after the other, they would take four times as long as one may.
        expect(performance.now() - startedAt).toBeLessThan(3 * timeoutMs);
      });
      await granted(store, "t");
    },
    { timeoutMs, poolSize: 2 },
  );
});

test("connections that the server closed are replaced, and no grant is lost on them", async () => {
  await withStore(async (store, { database }) => {
    await Promise.all([1, 2, 3, 4].map(() => store.getTags(["t"])));
    await database.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await granted(store, "t")).base).toBe(1n);
  });
});

test("the password is in no error", async () => {
  await withStore(async (_store, { config }) => {
    const secret = "s3cr3t-of-the-store";
    const bad = [
      `postgres://nobody:${secret}@127.0.0.1:1/none`,
      `postgres://nobody:${secret}@${new URL(config.url).host}/none`,
      `postgres://nobody:${secret}@host.invalid/none`,
      `postgres://nobody:${secret}@127.0.0.1:99999/none`,
      `postgres://nobody:${secret}@[::1/none`,
      `mysql://nobody:${secret}@127.0.0.1/none`,
      `postgres://nobody:${secret}@127.0.0.1/none?sslmode=require&sslrootcert=/no/such/file`,
      `postgres://nobody:${secret}%@127.0.0.1/none`,
    ];
    for (const url of bad) {
      const error: unknown = await openStore({ ...config, url }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(IdmintError);
      expect(["STORE_REFUSED", "STORE_UNAVAILABLE", "INVALID_ARGUMENT"]).toContain(
        (error as IdmintError).reason,
      );
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(secret);
    }
  });
});

test("a tag of another kind is refused", async () => {
  await withStore(async (store, { database }) => {
    await database.query(
      "UPDATE idmint.tag SET kind = 'sequence', written_by = pg_current_xact_id()::xid",
    );
    expect(await refusal(store, "t")).toBe("WRONG_KIND");
  });
});

test(`there are at most ${MAX_NODES} rows of servers; whoever has one keeps it`, async () => {
  await withStore(async (store, { database }) => {
    await database.query(`INSERT INTO idmint.node
      SELECT 'n' || i, '', '', '', '', 0, NULL, 1, '', 0, 0 FROM generate_series(1, ${MAX_NODES - 1}) AS i`);
    const isRenewed = async (id: string): Promise<boolean | undefined> => {
      const poll = { since: 0n, watched: [], limit: 1, renewal: nodeRenewalOf(id) };
      return (await store.changes(poll)).parts[0]?.isRenewed;
    };
    expect([await isRenewed("last"), await isRenewed("one-more")]).toEqual([true, false]);
    expect(await isRenewed("n1")).toBe(true);
  });
});

test("a full list of weights makes room of rows that say nothing, or refuses", async () => {
  await withStore(async (store, { database }) => {
    await database.query(`INSERT INTO idmint.traffic
      SELECT 's' || i, CASE i WHEN 3 THEN 100 ELSE 7 END, false, i FROM generate_series(1, ${MAX_TRAFFIC}) AS i`);
    const wish = { weight: 1, isDraining: false, revision: 0n };
    expect((await store.setTraffic({ ...wish, server: "more" })).revision).toBe(1_001n);
    await expect(store.setTraffic({ ...wish, server: "s3" })).rejects.toThrow("OVERLOADED");
    expect(await database.query("SELECT count(*)::int AS n FROM idmint.traffic")).toMatchObject([
      { n: MAX_TRAFFIC },
    ]);
  });
});

test("an ask from before the clock was set back keeps nobody from accepting", async () => {
  await withStore(async (store, { database }) => {
    expect(await store.askForClaims("one", ASK_MS)).toMatchObject({ outcome: "asked" });
    const setBack = (ms: number) =>
      database.query(`UPDATE idmint.ask SET expires_at_ms = expires_at_ms + ${ms}`);
    // A small step, as time services make them, ends no ask.
    await setBack(ASK_MS / 2);
    expect(await store.askForClaims("two", ASK_MS)).toMatchObject({ outcome: "busy" });
    await setBack(86_400_000);
    expect(await store.askForClaims("two", ASK_MS)).toMatchObject({ outcome: "asked" });
    expect((await store.hearClaims("one", { number: 1, answered: 0 })).isStanding).toBe(false);
  });
});
