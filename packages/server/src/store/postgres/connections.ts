import { Socket } from "node:net";
import { IdmintError } from "@idmint/core";
import pg from "pg";
import { DEFAULT_TIMEOUT_MS, type PostgresConfig } from "../shared/config.ts";
import { storeClosed, storeUnavailable } from "../shared/failures.ts";
import { prepareSession } from "./session.ts";

/** A statement; with a name PostgreSQL keeps its plan. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

/** One connection for the time of one unit of work. */
export interface Session {
  query<Row>(statement: Statement): Promise<readonly Row[]>;
  /** BEGIN … COMMIT around the work; ROLLBACK when it throws. */
  transaction<T>(work: () => Promise<T>): Promise<T>;
}

const DEFAULT_CONNECT_TIMEOUT_MS = 1_500;
const DEFAULT_POOL_SIZE = 4;
const IDLE_TIMEOUT_MS = 30_000;
/** Most units of work that wait for a connection. */
const MAX_WAITING = 1_000;

/** A client whose socket can be destroyed, which is the one way to bound every wait. */
class Connection extends pg.Client {
  readonly #socket: Socket;

  constructor(config?: pg.ClientConfig) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.#socket = socket;
  }

  /** Ends the connection at once, in whatever state it is. What it was doing has an unknown outcome. */
  destroy(): void {
    this.#socket.destroy();
  }
}

/**
 * The connections of this process to one database.
 *
 * INVARIANT: an answer counts only when it came whole, in time and without a warning. Everything else leaves the outcome
 * unknown, destroys the connection, and is STORE_UNAVAILABLE. So does a warning, since PostgreSQL answers success with
 * WARNING “canceling wait for synchronous replication” when a commit did not reach its standby. statement_timeout does
 * not bound that wait; only the end of the socket does.
 */
export class Connections {
  readonly #config: PostgresConfig;
  readonly #secret: string;
  readonly #timeoutMs: number;
  #pool: pg.Pool;
  #isClosed = false;

  constructor(config: PostgresConfig) {
    this.#config = config;
    this.#secret = decodeURIComponent(new URL(config.url).password);
    this.#timeoutMs = config.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#pool = this.#newPool();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#pool.end();
  }

  /** Runs one unit of work on a connection of its own; answers only when it is certain how it ended. */
  async run<T>(work: (session: Session) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw storeClosed();
    const pool = this.#pool;
    if (pool.waitingCount >= MAX_WAITING) {
      throw storeUnavailable("too many requests wait for a connection to the store");
    }
    const startedAt = performance.now();
    const client = await this.#connect(pool);
    const leftMs = Math.max(1, this.#timeoutMs - (performance.now() - startedAt));
    const warnings: string[] = [];
    const onNotice = (notice: {
      message?: string | undefined;
      code?: string | undefined;
    }): void => {
      warnings.push(`${notice.code ?? ""} ${notice.message ?? ""}`);
    };
    client.on("notice", onNotice);
    const timer = setTimeout(() => client.destroy(), leftMs);
    let isInDoubt = true;
    try {
      const result = await work(sessionOn(client));
      if (warnings.length > 0) {
        throw storeUnavailable(
          `PostgreSQL warned, the outcome is not known: ${warnings.join("; ")}`,
        );
      }
      isInDoubt = false;
      return result;
    } catch (error) {
      // Refusals of ours were rolled back in order; the connection is as good as before.
      if (error instanceof IdmintError && warnings.length === 0) {
        isInDoubt = error.code === "UNAVAILABLE";
        throw error;
      }
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
      throw this.#failure(error);
    }
  }

  /**
   * A connection that failed says that others may be dead too (a server that was restarted, a network that dropped idle
   * connections), and each would cost its own time-out. So all of them are left behind for new ones.
   */
  #discard(pool: pg.Pool, client: Connection): void {
    client.destroy();
    if (this.#pool !== pool || this.#isClosed) return;
    this.#pool = this.#newPool();
    // It ends when the last work on it has ended, each of which has its own time-out.
    pool.end().catch(() => undefined);
  }

  #newPool(): pg.Pool {
    const { url, poolSize, applicationName, connectTimeoutMs } = this.#config;
    const setUpMs = connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS;
    const pool = new pg.Pool({
      Client: Connection,
      connectionString: url,
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
      await prepareSession(client, this.#config, this.#timeoutMs);
      return undefined;
    } catch (error) {
      return this.#failure(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whatever went wrong below, without the password that drivers may put into their errors. */
  #failure(error: unknown): IdmintError {
    if (error instanceof IdmintError) return error;
    const { message, code } = error as { message?: string; code?: string };
    const text = [code, message].filter((part) => part !== undefined && part !== "").join(" ");
    const scrubbed = this.#secret === "" ? text : text.replaceAll(this.#secret, "…");
    return storeUnavailable("PostgreSQL failed or did not answer", new Error(scrubbed));
  }
}

function sessionOn(client: pg.ClientBase): Session {
  const query = async <Row>({ name, text, values }: Statement): Promise<readonly Row[]> => {
    const config = { text, values: [...(values ?? [])], ...(name === undefined ? {} : { name }) };
    const result = await client.query<Row & pg.QueryResultRow>(config);
    return result.rows;
  };
  const transaction = async <T>(work: () => Promise<T>): Promise<T> => {
    await client.query("BEGIN");
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
  return { query, transaction };
}
