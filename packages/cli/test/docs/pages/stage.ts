// What a page takes for granted: an empty folder and a home, programs on the PATH, and the databases that it names.
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { EtcdCluster } from "@idmint/testkit/etcd";
import { TestPostgres } from "@idmint/testkit/postgres";
import { RedisServer } from "@idmint/testkit/redis";
import { oldNode, TOOL_NAMES, toolProgram } from "@idmint/testkit/shells";
import { LEAF, SHOP, tinyid } from "../../commands/tag/import/dumps.ts";
import { cleanEnv } from "../../spawn.ts";
import { root } from "../snippets.ts";
import { Terminal } from "./terminal.ts";

/** What stands beside the reader. */
export interface Needs {
  /** Databases of a PostgreSQL at 127.0.0.1:5432; an empty list: the page makes them. */
  readonly postgres?: readonly string[];
  /** At 127.0.0.1:6379. */
  readonly redis?: true;
  /** At 127.0.0.1:2379. */
  readonly etcd?: true;
  /** In the reader's folder. */
  readonly files?: Readonly<Record<string, string>>;
  /** The folder is a clone of the repository. */
  readonly clone?: true;
  /** Default: as the index of the docs says, `idmint start-dev` runs, unless the page begins with a server of its own. */
  readonly noServer?: true;
}

const DUMPS = {
  "leaf.sql": LEAF,
  "tinyid-1.sql": tinyid(200_001),
  "tinyid-2.sql": tinyid(300_001),
  "shop.sql": SHOP,
};

export const NEEDS: Readonly<Record<string, Needs>> = {
  "README.md": { clone: true, postgres: [] },
  "docs/README.md": { clone: true },
  "docs/adapters/drizzle.md": { postgres: ["shop"] },
  "docs/adapters/prisma.md": { postgres: ["shop"] },
  "docs/adapters/typeorm.md": { postgres: ["shop"] },
  "docs/choosing.md": { noServer: true },
  "docs/deploy/helm.md": { noServer: true },
  "docs/etcd.md": { etcd: true },
  "docs/migrating.md": { files: DUMPS },
  "docs/postgres.md": { postgres: [] },
  "docs/redis.md": { redis: true },
  "docs/regions.md": { postgres: ["ids_eu", "ids_us"] },
  "docs/ticket.md": { postgres: ["ids_a", "ids_b", "ids_c"] },
  "packages/coordination/README.md": { redis: true, noServer: true },
};

const bundle = path.join(root, "packages/cli/dist/bundle/main.js");
const npm = path.resolve(import.meta.dirname, "npm-main.ts");
const grpcurl = path.resolve(import.meta.dirname, "grpcurl-main.ts");

/** The Nodes that run a page's programs: the oldest that the packages take, and the present one. */
export const NODES: readonly string[] = [oldNode(), process.execPath];

/** A page's reader. Dispose it. */
export class Stage implements AsyncDisposable {
  readonly folder: string;
  readonly terminal: Terminal;
  readonly #home: string;
  readonly #stores: readonly AsyncDisposable[];
  readonly #postgres: TestPostgres | undefined;
  readonly #databases: readonly string[];

  private constructor(needs: Needs, stores: readonly AsyncDisposable[]) {
    this.#stores = stores;
    this.#databases = needs.postgres ?? [];
    this.#postgres = stores.find((one) => one instanceof TestPostgres);
    this.#home = mkdtempSync(path.join(tmpdir(), "idmint-reader-"));
    const [folder, bin, typed] = ["work", "bin", "typed"].map((name) => {
      mkdirSync(path.join(this.#home, name));
      return path.join(this.#home, name);
    }) as [string, string, string];
    this.folder = folder;
    if (needs.clone === true) {
      for (const name of readdirSync(root))
        symlinkSync(path.join(root, name), path.join(folder, name));
    } else {
      mkdirSync(path.join(folder, "node_modules/@idmint"), { recursive: true });
      for (const name of ["client", "coordination"]) {
        symlinkSync(
          path.join(root, "packages", name),
          path.join(folder, "node_modules/@idmint", name),
        );
      }
    }
    for (const [name, text] of Object.entries(needs.files ?? {})) {
      writeFileSync(path.join(folder, name), text);
    }
    const node = `'${process.execPath}'`;
    if (needs.clone !== true) {
      // As npm installs it, for npx.
      const installed = path.join(folder, "node_modules/.bin");
      mkdirSync(installed);
      writeProgram(installed, "idmint", `${node} '${bundle}'`);
    }
    writeProgram(bin, "idmint", `${node} '${bundle}'`);
    writeProgram(bin, "grpcurl", `${node} -C idmint-source '${grpcurl}'`);
    writeProgram(bin, "npm", `${node} -C idmint-source '${npm}'`);
    for (const name of TOOL_NAMES) {
      const { command, env } = toolProgram(name);
      const set = Object.entries(env).map(([key, value]) => `${key}='${value}'`);
      writeProgram(bin, name, ["env", ...set, `'${command}'`].join(" "));
    }
    this.terminal = new Terminal({ cwd: folder, env: this.#env(bin), folder: typed });
  }

  static async set(needs: Needs): Promise<Stage> {
    const stores: AsyncDisposable[] = [];
    if (needs.postgres !== undefined) {
      // Durable, as a server for production must be: nothing unsafe has to be allowed.
      const postgres = await TestPostgres.start({ durable: true, port: 5432 });
      stores.push(postgres);
      for (const name of needs.postgres) {
        await postgres.query(`CREATE ROLE "${name}" LOGIN`);
        await postgres.query(`CREATE DATABASE "${name}" OWNER "${name}"`);
      }
    }
    if (needs.redis === true) stores.push(await RedisServer.start({ port: 6379 }));
    if (needs.etcd === true) stores.push(await EtcdCluster.start({ clientPort: 2379 }));
    return new Stage(needs, stores);
  }

  /** In the page's database, as its owner; what makes databases, as a superuser. */
  async sql(code: string): Promise<void> {
    // PostgreSQL makes no database within a transaction.
    const makes = code.includes("CREATE DATABASE");
    const [name = "idmint"] = this.#databases;
    const role = name === "idmint" ? "idmint_owner" : name;
    const statements = makes ? code.split(";\n") : [`SET ROLE ${role};${code}`];
    for (const one of statements) await this.#postgres?.query(one, makes ? "postgres" : name);
  }

  #env(bin: string): Record<string, string> {
    const home = path.join(this.#home, "home");
    mkdirSync(home);
    const { IDMINT_CONFIG_HOME: _, NODE_OPTIONS: __, ...env } = cleanEnv();
    const folders = [bin, path.dirname(process.execPath), env["PATH"]];
    return {
      ...env,
      HOME: home,
      PATH: folders.join(path.delimiter),
      // Packages that npm has already need not be fetched again for each reader.
      npm_config_cache: process.env["npm_config_cache"] ?? path.join(homedir(), ".npm"),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminal[Symbol.asyncDispose]();
    for (const store of this.#stores) await store[Symbol.asyncDispose]();
    rmSync(this.#home, { recursive: true, force: true });
  }
}

function writeProgram(folder: string, name: string, command: string): void {
  const file = path.join(folder, name);
  writeFileSync(file, `#!/bin/sh\nexec ${command} "$@"\n`);
  chmodSync(file, 0o755);
}
