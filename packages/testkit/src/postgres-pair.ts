// Two real PostgreSQL servers that stream from one to the other, to be promoted, killed, frozen, stalled and joined again.
import { setTimeout as pause } from "node:timers/promises";
import { type PostgresOptions, TestPostgres } from "./postgres.ts";

/** `synchronous`: each commit of the primary waits for the standby. */
export type PairKind = "asynchronous" | "synchronous";
type Name = "a" | "b";

const REPLAY_TIMEOUT_MS = 60_000;
const SETTINGS = { wal_retrieve_retry_interval: "100ms", wal_keep_size: "64MB" };

/**
 * A primary and its standby. Their names, `a` and `b`, are their cluster_name, and so the name under which a standby asks
 * for the log. Close it.
 */
export class TestPostgresPair implements AsyncDisposable {
  readonly kind: PairKind;
  readonly #servers: Record<Name, TestPostgres>;
  #primary: Name = "a";

  private constructor(kind: PairKind, servers: Record<Name, TestPostgres>) {
    this.kind = kind;
    this.#servers = servers;
  }

  static async start(kind: PairKind, options: PostgresOptions = {}): Promise<TestPostgresPair> {
    const settingsOf = (name: Name): PostgresOptions => ({
      durable: true,
      ...options,
      settings: { ...SETTINGS, cluster_name: name, ...options.settings },
    });
    const a = await TestPostgres.start(settingsOf("a"));
    const b = await TestPostgres.startStandby(a, settingsOf("b"));
    const pair = new TestPostgresPair(kind, { a, b });
    if (kind === "synchronous") await pair.waitForStandby();
    return pair;
  }

  get primary(): TestPostgres {
    return this.#servers[this.#primary];
  }

  get standby(): TestPostgres {
    return this.#servers[this.#standbyName];
  }

  get #standbyName(): Name {
    return this.#primary === "a" ? "b" : "a";
  }

  /** Both hosts in one URL. */
  url(database = "postgres"): string {
    const { a, b } = this.#servers;
    return `postgres://postgres@127.0.0.1:${a.port},127.0.0.1:${b.port}/${database}`;
  }

  /** Makes each commit of the primary wait for the standby from now on. */
  async waitForStandby(): Promise<void> {
    await this.setStandbyNames(this.#standbyName);
  }

  /** Sets synchronous_standby_names of the primary, and returns when its sessions have it. */
  async setStandbyNames(names: string): Promise<void> {
    // ALTER SYSTEM writes a file and commits nothing, so it waits for no standby.
    await this.primary.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await this.primary.query("SELECT pg_reload_conf()");
    await this.#sees(this.primary, `current_setting('synchronous_standby_names') = '${names}'`);
  }

  /** Promotes the standby, whatever the primary does; the two change places. */
  async promote(sql: string = "SELECT pg_promote(true, 60)"): Promise<void> {
    await this.standby.query(sql);
    this.#primary = this.#standbyName;
  }

  /** Makes the old primary, which does not run, a fresh copy of the new one that follows it. */
  async rejoin(): Promise<void> {
    await this.standby.becomeStandbyOf(this.primary);
    if (this.kind === "synchronous") await this.waitForStandby();
  }

  /** The standby hears nothing any more, though its connection stays: the sender of the log stops. The answer undoes it. */
  async stallStandby(): Promise<() => void> {
    const [row] = await this.primary.query(
      `SELECT pid FROM pg_stat_replication WHERE application_name = '${this.#standbyName}'`,
    );
    const pid = Number(row?.["pid"]);
    process.kill(pid, "SIGSTOP");
    return () => process.kill(pid, "SIGCONT");
  }

  /** Waits until the standby has all that the primary wrote so far. */
  async caughtUp(): Promise<void> {
    const [row] = await this.primary.query("SELECT pg_current_wal_flush_lsn()::text AS at");
    await this.#sees(this.standby, `pg_last_wal_replay_lsn() >= '${String(row?.["at"])}'`);
  }

  /** Cancels every commit that waits for the standby now; answers how many there were. */
  async cancelWaits(): Promise<number> {
    const rows = await this.primary.query(
      "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
    );
    return rows.length;
  }

  async close(): Promise<void> {
    for (const server of Object.values(this.#servers)) await server.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #sees(server: TestPostgres, condition: string): Promise<void> {
    const end = performance.now() + REPLAY_TIMEOUT_MS;
    for (;;) {
      const [row] = await server.query(`SELECT ${condition} AS is_so`);
      if (row?.["is_so"] === true) return;
      if (performance.now() > end) throw new Error(`PostgreSQL never had ${condition}`);
      await pause(20);
    }
  }
}
