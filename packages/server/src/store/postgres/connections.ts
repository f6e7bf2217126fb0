import { bounded, IdmintError } from "@idmint/core";
import { storeUnavailable } from "@idmint/core/server";
import pg from "pg";
import {
  DEFAULT_CONNECT_TIMEOUT_MS,
  DEFAULT_TIMEOUT_MS,
  type PostgresConfig,
} from "../shared/config.ts";
import { nodeTimers } from "../../timers.ts";
import { storeClosed } from "../shared/failures.ts";
import { addressOf, hostUrls } from "../shared/host-urls.ts";
import { ALONE } from "../shared/placed-tag.ts";
import type { Belonging } from "./hosts/belonging.ts";
import { onlyStore } from "./identity.ts";
import { OwnRow } from "./hosts/own-row.ts";
import { Confirmation, unconfirmed } from "./hosts/confirmation.ts";
import { Connection, withPlainSslMode } from "./hosts/connection.ts";
import { lookAtHost } from "./hosts/look.ts";
import { Primary } from "./hosts/primary.ts";
import { type Deeds, failureOf, isHarmless } from "./refusal.ts";
import { storableIn } from "./records/storable.ts";
import { beginTransaction, prepareSession } from "./session.ts";

/** A statement; with a name PostgreSQL keeps its plan. */
interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

/** One connection for the time of one unit of work. */
export interface Session {
  query<Row>(statement: Statement): Promise<readonly Row[]>;
  /** A text as the database can store it, whatever a caller put into it. */
  storable(text: string): string;
  /** BEGIN … COMMIT around the work; ROLLBACK when it throws. */
  transaction<T>(work: () => Promise<T>): Promise<T>;
}

const DEFAULT_POOL_SIZE = 4;
/** How long after its deadline work may take to notice, in milliseconds. */
const LATE_MS = 100;
/** How long before its deadline work gives up waiting for standbys, so that the connection stays. */
const CONFIRM_MARGIN_MS = 100;
/** An answer, and those of the standbys that the store names which lack what it rests on. */
interface Confirmed<T> {
  readonly answer: T;
  readonly missing: readonly string[];
}

const IDLE_TIMEOUT_MS = 30_000;
/** Most units of work at once, running and waiting for a connection. */
const MAX_RUNNING = 1_000;

/**
 * The connections of this process to one database.
 *
 * INVARIANT: an answer counts only when it came whole, in time and without a warning. Everything else leaves the outcome
 * unknown, destroys the connection, and is STORE_UNAVAILABLE. So does a warning, since PostgreSQL answers success with
 * WARNING “canceling wait for synchronous replication” when a commit did not reach its standby. statement_timeout does
 * not bound that wait; only the end of the socket does.
 */
export class Connections {
  /** What the configuration says of the database; see there. */
  readonly place: NonNullable<PostgresConfig["place"]>;
  /** What this process knows of its row in the store. */
  readonly ownRow: OwnRow = new OwnRow();
  #allowed: readonly string[];
  readonly #config: PostgresConfig;
  readonly #belonging: Belonging | undefined;
  readonly #secret: string;
  /** Host and port of each host. */
  readonly #address: string;
  readonly #primary: Primary;
  /** What the database has done for this process. */
  #deeds: Deeds = "none";
  #encoding = "UTF8";
  readonly #timeoutMs: number;
  readonly #begin: string;
  /** The host that the pool is of. */
  #url: string;
  #pool: pg.Pool;
  /** Connections that may be begun; a wait for one is here and not in the pool, which may be replaced meanwhile. */
  #places: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;
  readonly #onIdle: (() => void)[] = [];
  #closing: Promise<void> | undefined;
  #confirmation: Confirmation | undefined;

  /** Without `belonging` they lead to whatever answers, as operators want who look at a store. */
  constructor(config: PostgresConfig, belonging?: Belonging) {
    this.#belonging = belonging;
    this.place = config.place ?? ALONE;
    this.#allowed = config.allowUnsafe;
    this.#config = config;
    const urls = hostUrls(config.url) ?? [config.url];
    this.#secret = decodeURIComponent(new URL(urls[0]).password);
    this.#address = urls.map(addressOf).join(", ");
    this.#primary = new Primary(urls, async (url) => this.#look(url));
    this.#url = urls[0];
    this.#timeoutMs = config.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#begin = beginTransaction(config.allowUnsafe);
    this.#places = config.poolSize ?? DEFAULT_POOL_SIZE;
    this.#pool = this.#newPool();
  }

  /**
   * From now on answers wait for the standbys that the store names: with several hosts, unless an operator takes the risk of
   * what standbys may lack.
   */
  startConfirming(): void {
    const { url, allowUnsafe } = this.#config;
    const isPair = (hostUrls(url)?.length ?? 1) > 1;
    const isUnsafe = ["synchronous_commit", "synchronous_standby_names"].some((name) =>
      allowUnsafe.includes(name),
    );
    if (!isPair || isUnsafe) return;
    this.#confirmation = new Confirmation();
    this.#allowed = [...allowUnsafe, "standbys"];
  }

  /**
   * Names of what is unsafe and goes on all the same; `standbys` where answers wait for them, and which store alone may answer
   * (identity.ts).
   */
  get allowUnsafe(): readonly string[] {
    return [...this.#allowed, onlyStore(this.#belonging?.id)];
  }

  /** The role was found to be allowed what a server does: from now on a refusal passes. */
  hasServed(): void {
    this.#deeds = "served";
  }

  /** Undefined where answers wait for no standbys. */
  get confirmation(): Confirmation | undefined {
    return this.#confirmation;
  }

  /** Lets the work before it end, which its time-outs see to, then closes all connections. */
  async close(): Promise<void> {
    this.#closing ??= this.#end();
    await this.#closing;
  }

  async #end(): Promise<void> {
    while (this.#running > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    await this.#pool.end();
  }

  /**
   * Runs one unit of work on a connection of its own; answers only when it is certain how it ended, and that every standby
   * which the store names has it.
   */
  async run<T>(
    work: (session: Session) => Promise<T>,
    timeoutMs: number = this.#timeoutMs,
  ): Promise<T> {
    const { answer, missing } = await this.#run(work, timeoutMs, timeoutMs);
    if (missing.length > 0) throw unconfirmed(missing);
    return answer;
  }

  /** The same for work whose answer says by itself how much it is worth: standbys are waited for only so long. */
  async runUnconfirmed<T>(
    work: (session: Session) => Promise<T>,
    patienceMs: number,
  ): Promise<Confirmed<T>> {
    return this.#run(work, patienceMs, this.#timeoutMs);
  }

  async #run<T>(
    work: (session: Session) => Promise<T>,
    patienceMs: number,
    timeoutMs: number,
  ): Promise<Confirmed<T>> {
    if (this.#closing !== undefined) throw storeClosed();
    if (this.#running >= MAX_RUNNING) {
      throw storeUnavailable("too many requests wait for a connection to the store");
    }
    this.#running++;
    const deadlineMs = performance.now() + timeoutMs;
    const working = this.#work(deadlineMs, work, patienceMs).finally(() => {
      this.#running--;
      if (this.#running === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    });
    return inTime(working, deadlineMs);
  }

  async #work<T>(
    deadlineMs: number,
    work: (session: Session) => Promise<T>,
    patienceMs: number,
  ): Promise<Confirmed<T>> {
    await this.#enter(deadlineMs);
    try {
      return await this.#runOn(await this.#poolOfPrimary(), deadlineMs, work, patienceMs);
    } finally {
      this.#leave();
    }
  }

  async #poolOfPrimary(): Promise<pg.Pool> {
    const url = await this.#primary.url();
    if (url !== this.#url) {
      this.#url = url;
      this.#replacePool();
    }
    return this.#pool;
  }

  #look(url: string): ReturnType<typeof lookAtHost> {
    return lookAtHost(url, this.#config, (error) => this.#failure(error, addressOf(url)));
  }

  /** Waits for one of the places, first come, first served. */
  async #enter(deadlineMs: number): Promise<void> {
    if (this.#places > 0) {
      this.#places--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const enter = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(enter);
        reject(storeUnavailable("no connection to the store became free in time"));
      }, deadlineMs - performance.now());
      this.#waiting.add(enter);
    });
  }

  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#places++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }

  async #runOn<T>(
    pool: pg.Pool,
    deadlineMs: number,
    work: (session: Session) => Promise<T>,
    patienceMs: number,
  ): Promise<Confirmed<T>> {
    const client = await this.#connect(pool);
    const leftMs = deadlineMs - performance.now();
    if (leftMs <= 0) {
      client.release();
      throw storeUnavailable("no connection to the store was made in time");
    }
    const warnings: string[] = [];
    const onNotice = (notice: {
      message?: string | undefined;
      code?: string | undefined;
    }): void => {
      warnings.push(`${notice.code ?? ""} ${notice.message ?? ""}`);
    };
    client.on("notice", onNotice);
    const timer = setTimeout(() => client.abandon(), leftMs);
    let isInDoubt = true;
    try {
      const answer = await work(sessionOn(client, this.#begin, this.#encoding));
      const untilMs = Math.min(performance.now() + patienceMs, deadlineMs - CONFIRM_MARGIN_MS);
      const missing = (await this.#confirmation?.missing(client, untilMs)) ?? [];
      if (warnings.length > 0) {
        throw storeUnavailable(
          `PostgreSQL warned, the outcome is not known: ${warnings.join("; ")}`,
        );
      }
      isInDoubt = false;
      if (this.#deeds === "none") this.#deeds = "answered";
      return { answer, missing };
    } catch (error) {
      // Refusals of ours were rolled back in order; the connection is as good as before.
      if (error instanceof IdmintError && warnings.length === 0) {
        isInDoubt = error.code === "UNAVAILABLE";
        throw error;
      }
      isInDoubt = !isHarmless(error) || warnings.length > 0;
      throw this.#failure(error);
    } finally {
      clearTimeout(timer);
      client.off("notice", onNotice);
      if (isInDoubt) this.#discard(pool, client);
      client.release(isInDoubt);
    }
  }

  async #connect(pool: pg.Pool): Promise<pg.PoolClient & Connection> {
    try {
      return (await pool.connect()) as pg.PoolClient & Connection;
    } catch (error) {
      this.#primary.forget();
      throw this.#failure(error);
    }
  }

  /**
   * A connection that failed says that others may be dead too (a server that was restarted, a network that dropped idle
   * connections), and each would cost its own time-out. So all of them are left behind for new ones.
   */
  #discard(pool: pg.Pool, client: Connection): void {
    client.destroy();
    if (this.#pool !== pool) return;
    this.#primary.forget();
    this.#replacePool();
  }

  #replacePool(): void {
    const pool = this.#pool;
    this.#pool = this.#newPool();
    // It ends when the last work on it has ended, each of which has its own time-out; nobody waits in it.
    pool.end().catch(() => undefined);
  }

  #newPool(): pg.Pool {
    const { poolSize, applicationName, connectTimeoutMs } = this.#config;
    const setUpMs = connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS;
    const pool = new pg.Pool({
      Client: Connection,
      connectionString: withPlainSslMode(this.#url),
      max: poolSize ?? DEFAULT_POOL_SIZE,
      connectionTimeoutMillis: setUpMs,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      application_name: applicationName ?? "idmint",
      verify: (client, answer) => {
        void this.#setUp(client as pg.PoolClient & Connection, setUpMs).then(answer);
      },
    });
    // An idle connection that breaks is replaced at the next use, which tells if the server is gone.
    pool.on("error", () => undefined);
    return pool;
  }

  /** What speaks against a new connection; it has as long for that as it had to connect. */
  async #setUp(client: Connection, timeoutMs: number): Promise<Error | undefined> {
    const timer = setTimeout(() => client.destroy(), timeoutMs);
    try {
      this.#encoding = await prepareSession(client, this.#config, this.#timeoutMs);
      await this.#belonging?.prove(client);
      return undefined;
    } catch (error) {
      return this.#failure(error);
    } finally {
      clearTimeout(timer);
    }
  }

  #failure(error: unknown, address: string = this.#address): IdmintError {
    return failureOf(error, { address, secret: this.#secret, deeds: this.#deeds });
  }
}

/** The socket is destroyed at the deadline, which ends the work; only the making of a connection may take longer. */
function inTime<T>(working: Promise<T>, deadlineMs: number): Promise<T> {
  return bounded(working, deadlineMs + LATE_MS - performance.now(), nodeTimers, () => {
    throw storeUnavailable("the store did not answer in time");
  });
}

function sessionOn(client: pg.ClientBase, begin: string, encoding: string): Session {
  const query = async <Row>({ name, text, values }: Statement): Promise<readonly Row[]> => {
    const config = { text, values: [...(values ?? [])], ...(name === undefined ? {} : { name }) };
    const result = await client.query<Row & pg.QueryResultRow>(config);
    return result.rows;
  };
  const transaction = async <T>(work: () => Promise<T>): Promise<T> => {
    await client.query(begin);
    let result: T;
    try {
      result = await work();
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    }
    const { command } = await client.query("COMMIT");
    // COMMIT of a transaction that had failed answers ROLLBACK.
    if (command !== "COMMIT") throw storeUnavailable("the transaction was rolled back");
    return result;
  };
  return { query, transaction, storable: storableIn(encoding) };
}
