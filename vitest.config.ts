import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { defineConfig, type Plugin, type TestProjectConfiguration } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// A test's suffix says what it needs; each file belongs to exactly one project.
const kinds = ["model", "pg", "redis", "etcd", "pages", "sim", "e2e", "chaos", "pack"];
const special = `packages/*/test/**/*.{${kinds.join(",")}}.test.ts`;

// Workspace packages run from src/, unbuilt.
const conditions = ["idmint-source"];

const MEMORY = "/dev/shm";
/** More than all databases of a run take at once. */
const MEMORY_BYTES = 4 * 2 ** 30;

/**
 * Whether temporary files may lie in memory. The suites kill processes and never the machine, so nothing needs a disk,
 * and a slow one makes them several times slower. The space must suffice, and programs must be allowed to run there.
 */
function hasMemory(): boolean {
  let folder: string | undefined;
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    if (bavail * bsize < MEMORY_BYTES) return false;
    folder = mkdtempSync(path.join(MEMORY, "idmint-"));
    const program = path.join(folder, "program");
    writeFileSync(program, "#!/bin/sh\n");
    chmodSync(program, 0o700);
    return spawnSync(program).status === 0;
  } catch {
    return false;
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true });
  }
}

if (process.env["TMPDIR"] === undefined && hasMemory()) process.env["TMPDIR"] = MEMORY;
// Tests start hundreds of processes and threads; each would compile the same files again.
process.env["NODE_COMPILE_CACHE"] ??= path.join(
  import.meta.dirname,
  "node_modules/.cache/idmint-compile",
);

/**
 * What takes longest: storms that are alike in what they show, since each kind of id and each store has several, and whole
 * systems with all their faults, or in a browser.
 */
const LONGEST = [
  "packages/cli/test/commands/bad-input.e2e.test.ts",
  "packages/client/test/servers/zones.e2e.test.ts",
  "packages/server/test/store/etcd/cluster/members.e2e.test.ts",
  "packages/server/test/store/sqlite/claims.e2e.test.ts",
  "packages/server/test/store/sqlite/restore.chaos.test.ts",
  "packages/testkit/test/console/console.e2e.test.ts",
  "packages/testkit/test/console/fleet.e2e.test.ts",
  "packages/testkit/test/console/tags.e2e.test.ts",
  "packages/testkit/test/deploy/chart-server.e2e.test.ts",
  "packages/testkit/test/deploy/chart.e2e.test.ts",
  "packages/testkit/test/deploy/watch.e2e.test.ts",
  "packages/testkit/test/floods/overload.chaos.test.ts",
  "packages/testkit/test/floods/strangers.chaos.test.ts",
  "packages/testkit/test/kinds/sequence/gaps.e2e.test.ts",
  "packages/testkit/test/kinds/sequence/midnight.chaos.test.ts",
  "packages/testkit/test/kinds/sequence/redis.chaos.test.ts",
  "packages/testkit/test/kinds/sequence/sentinel.chaos.test.ts",
  "packages/testkit/test/kinds/sequence/sequence.chaos.test.ts",
  "packages/testkit/test/kinds/snowflake/clocks.chaos.test.ts",
  "packages/testkit/test/kinds/snowflake/snowflake.chaos.test.ts",
  "packages/testkit/test/kinds/snowflake/worker-ids-postgres.chaos.test.ts",
  "packages/testkit/test/kinds/snowflake/worker-ids-redis.chaos.test.ts",
  "packages/testkit/test/kinds/snowflake/worker-ids-sqlite.chaos.test.ts",
  "packages/testkit/test/operation/ledger.chaos.test.ts",
  "packages/testkit/test/outages/crash.chaos.test.ts",
  "packages/testkit/test/outages/etcd.chaos.test.ts",
  "packages/testkit/test/outages/fail-over.chaos.test.ts",
  "packages/testkit/test/outages/freeze.chaos.test.ts",
  "packages/testkit/test/outages/sdk-survival.chaos.test.ts",
  "packages/testkit/test/outages/zones.chaos.test.ts",
  "packages/testkit/test/servers/cold-tags.e2e.test.ts",
  "packages/testkit/test/servers/processes.chaos.test.ts",
  "packages/testkit/test/servers/rolling.chaos.test.ts",
  "packages/testkit/test/servers/soak.chaos.test.ts",
  "packages/testkit/test/went-back/claims.chaos.test.ts",
  "packages/testkit/test/went-back/kept-row.chaos.test.ts",
  "packages/testkit/test/went-back/lies.chaos.test.ts",
  "packages/testkit/test/went-back/two-stores.chaos.test.ts",
  "packages/testkit/test/went-back/went-back.chaos.test.ts",
];

/** How many of them a run takes with IDMINT_PART=1. */
const LONGEST_TAKEN = 3;

/** Test files that run on both doors of gRPC in each run. */
const ON_BOTH_DOORS = [
  "packages/server/test/access/tls.e2e.test.ts",
  "packages/server/test/doors/grpc.e2e.test.ts",
  "packages/server/test/service/issue/stream-ids.e2e.test.ts",
];

/** The commit of this checkout; a text of its own where there is none. */
function commit(): string {
  const { status, stdout } = spawnSync("git", ["rev-parse", "HEAD"], {
    cwd: import.meta.dirname,
    encoding: "utf8",
  });
  return status === 0 ? stdout.trim() : "no commit";
}

// What a run chooses of many alike, the commit chooses: files, and the cases of properties. Long runs draw new cases each time.
process.env["IDMINT_COMMIT"] ??= commit();
if (process.env["IDMINT_LONG"] !== "1") {
  const digest = createHash("sha256").update(process.env["IDMINT_COMMIT"]).digest();
  process.env["IDMINT_SEED"] ??= String(digest.readUInt32BE() >>> 1);
}

/**
 * The files of whole systems and storms that this run leaves to other commits: none, or with IDMINT_PART=1 all but a few of the
 * longest and half of the others. The commit chooses, so that runs of one commit are alike and all files have their turn.
 */
function leftOut(): string[] {
  if (process.env["IDMINT_PART"] !== "1") return [];
  if (process.env["IDMINT_LEFT_OUT"] === undefined) {
    const of = process.env["IDMINT_COMMIT"] ?? "";
    const turn = (file: string): string =>
      createHash("sha256")
        .update(of + file)
        .digest("hex");
    const files = wholeSystems().toSorted((a, b) => (turn(a) < turn(b) ? -1 : 1));
    const longest = files.filter((file) => LONGEST.includes(file));
    const others = files.filter((file) => !LONGEST.includes(file));
    const left = [...longest.slice(LONGEST_TAKEN), ...others.slice(Math.ceil(others.length / 2))];
    // This file is read several times in a run.
    process.env["IDMINT_LEFT_OUT"] = left.join(" ");
    process.stdout.write(`Left to other commits: ${left.length} of ${files.length} files.\n`);
  }
  return process.env["IDMINT_LEFT_OUT"].split(" ");
}

function wholeSystems(): string[] {
  const packages = path.join(import.meta.dirname, "packages");
  return readdirSync(packages).flatMap((name) => {
    const folder = path.join(packages, name, "test");
    if (!existsSync(folder)) return [];
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    return files
      .filter((file) => /\.(?:e2e|chaos)\.test\.ts$/u.test(file))
      .map((file) => path.posix.join("packages", name, "test", file));
  });
}

// The door that servers have unless they are told. `pnpm test:doors` runs all files on both.
process.env["TEST_DOOR"] ??= "fast";

const THREAD = "packages/server/src/store/sqlite/";

/**
 * Lets the SQLite stores of tests, of which there are a thousand, start the thread that scripts/test-program.ts bundled. Vitest keeps
 * what this makes of the file for later runs, whose bundle is another one: so the place is looked up when a thread starts.
 */
const bundledThread: Plugin = {
  name: "idmint-bundled-thread",
  enforce: "pre",
  transform(code, id) {
    if (id !== path.join(import.meta.dirname, THREAD, "store.ts")) return undefined;
    const source = '"./thread.ts"';
    if (!code.includes(source)) throw new Error(`no ${source} to replace`);
    return { code: code.replace(source, 'process.env["TEST_THREAD"]'), map: null };
  },
};

/** Gives properties the seed of the run. */
const seededProperties: Plugin = {
  name: "idmint-seeded-properties",
  enforce: "pre",
  transform(code) {
    if (!code.includes('import fc from "fast-check"')) return undefined;
    const seed = 'globalThis.process.env["IDMINT_SEED"]';
    const line = `if (${seed} !== undefined) fc.configureGlobal({ seed: Number(${seed}) });`;
    return { code: `${code}\n${line}\n`, map: null };
  },
};

/** The longest files go first, and what waits most before what only computes: that fills the machine at the end. */
const ORDER = ["pages", "redis", "pg", "etcd", "chaos", "e2e", "doors", "sim", "model", "unit"];

class WaitingFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- It is the sequencer's, which copies.
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => placeOf(a) - placeOf(b));
  }
}

function placeOf({ project: { name }, moduleId }: TestSpecification): number {
  const isLongest = LONGEST.includes(path.relative(import.meta.dirname, moduleId));
  return isLongest ? -1 : ORDER.indexOf(name);
}

/**
 * Projects whose files share the modules of a worker: half of their CPU went into loading them anew for each file. What a file
 * changes of the process, it puts back. Frameworks and browsers do not, so whole systems have workers of their own.
 */
const SHARED: ReadonlySet<string> = new Set(["unit", "model", "pg", "redis", "etcd"]);

function project(
  name: string,
  timeoutMs: number,
  test: {
    include?: string[];
    exclude?: string[];
    env?: Record<string, string>;
    globalSetup?: string;
  } = {},
): TestProjectConfiguration {
  return {
    plugins: [bundledThread, seededProperties],
    resolve: { conditions },
    ssr: { resolve: { conditions, externalConditions: conditions } },
    test: {
      name,
      include: [`packages/*/test/**/*.${name}.test.ts`],
      testTimeout: timeoutMs,
      hookTimeout: Math.max(timeoutMs, 60_000),
      pool: "forks",
      isolate: !SHARED.has(name),
      execArgv: ["-C", "idmint-source"],
      setupFiles: ["packages/testkit/src/file-setup.ts"],
      env: SHARED.has(name) ? { TEST_SHARED: "1" } : {},
      // The default of a second is less than a busy machine may take.
      expect: { poll: { timeout: 10_000 } },
      ...test,
    },
  };
}

export default defineConfig({
  test: {
    // More than the two cores of a small machine: much of the time goes by in waiting for faults to pass and leases to end.
    maxWorkers: 6,
    sequence: { sequencer: WaitingFirst },
    globalSetup: "scripts/test-program.ts",
    reporters: ["default", "./scripts/budget.ts"],
    projects: [
      // Pure code and small servers on free ports: no database, no process.
      project("unit", 30_000, { include: ["packages/*/test/**/*.test.ts"], exclude: [special] }),
      // Properties and schedules by fast-check.
      project("model", 180_000),
      // A real PostgreSQL.
      project("pg", 180_000, {
        globalSetup: "packages/testkit/src/postgres-setup.ts",
      }),
      // A real Redis.
      project("redis", 180_000, {
        globalSetup: "packages/testkit/src/redis/setup.ts",
      }),
      // A real etcd.
      project("etcd", 180_000, {
        globalSetup: "packages/testkit/src/etcd/setup.ts",
      }),
      // The pages for users as printed.
      project("pages", 180_000, { globalSetup: "packages/cli/test/docs/pages/build.setup.ts" }),
      // Simulated fleets: what they notice, and that a seed comes again.
      project("sim", 180_000),
      // Real servers and command lines, one or a few processes of each.
      project("e2e", 180_000, { exclude: leftOut() }),
      // What shows most of a door of gRPC, on the door that `e2e` does not take for it.
      project("doors", 180_000, {
        include: ON_BOTH_DOORS,
        env: { TEST_OTHER_DOOR: "1" },
      }),
      // Storms: fleets of processes that are killed, frozen and set back for a while. IDMINT_LONG=1 makes them long.
      project("chaos", 180_000, { exclude: leftOut() }),
      // What is published: the packed tarballs.
      project("pack", 120_000, { globalSetup: "packages/testkit/test/pack/build.setup.ts" }),
    ],
  },
});
