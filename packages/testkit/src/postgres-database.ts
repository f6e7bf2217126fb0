// Databases of tests, on any PostgreSQL, and connections to them.
import pg from "pg";

/** A database of a test's own, on any server. Close it. */
export class TestDatabase implements AsyncDisposable {
  readonly url: string;
  readonly name: string;
  readonly #serverUrl: string;

  private constructor(serverUrl: string, name: string) {
    this.#serverUrl = serverUrl;
    this.name = name;
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    this.url = url.href;
  }

  /** `template`: the database that it is a copy of, to which nobody may be connected. */
  static async create(serverUrl: string, name: string, template?: string): Promise<TestDatabase> {
    const copied = template === undefined ? "" : ` TEMPLATE "${template}"`;
    await queryAt(serverUrl, `CREATE DATABASE "${name}"${copied}`);
    return new TestDatabase(serverUrl, name);
  }

  /** Runs statements in this database, as the URL's user. */
  async query(sql: string): Promise<readonly Record<string, unknown>[]> {
    return queryAt(this.url, sql);
  }

  /** Drops the database, with whoever is connected to it. */
  async close(): Promise<void> {
    await queryAt(this.#serverUrl, `DROP DATABASE IF EXISTS "${this.name}" WITH (FORCE)`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** A connection that stays. Close it. */
export class TestSession {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async connect(url: string): Promise<TestSession> {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
    client.on("error", () => undefined);
    await client.connect();
    return new TestSession(client);
  }

  async query(sql: string): Promise<readonly Record<string, unknown>[]> {
    const result = (await this.#client.query(sql)) as pg.QueryResult | readonly pg.QueryResult[];
    // Several statements in one text answer several results; the last one counts.
    const last = "rows" in result ? result : result.at(-1);
    return (last?.rows ?? []) as Record<string, unknown>[];
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}

/** On a connection of its own. */
export async function queryAt(
  url: string,
  sql: string,
): Promise<readonly Record<string, unknown>[]> {
  const session = await TestSession.connect(url);
  try {
    return await session.query(sql);
  } finally {
    await session.close();
  }
}
