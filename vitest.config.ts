import { defineConfig, type TestProjectConfiguration } from "vitest/config";

// A test's suffix says what it needs; each file belongs to exactly one project.
const kinds = ["model", "pg", "redis", "e2e", "chaos", "pack"];
const special = `packages/*/test/**/*.{${kinds.join(",")}}.test.ts`;

// Workspace packages run from src/, unbuilt.
const conditions = ["idmint-source"];

function project(
  name: string,
  timeoutMs: number,
  test: { include?: string[]; exclude?: string[]; globalSetup?: string } = {},
): TestProjectConfiguration {
  return {
    resolve: { conditions },
    ssr: { resolve: { conditions, externalConditions: conditions } },
    test: {
      name,
      include: [`packages/*/test/**/*.${name}.test.ts`],
      testTimeout: timeoutMs,
      hookTimeout: Math.max(timeoutMs, 60_000),
      pool: "forks",
      execArgv: ["-C", "idmint-source"],
      ...test,
    },
  };
}

export default defineConfig({
  test: {
    // Most of the time goes by in waiting: for processes to start, faults to pass and leases to end.
    maxWorkers: 2,
    projects: [
      // Pure code and small servers on free ports: no database, no process.
      project("unit", 30_000, { include: ["packages/*/test/**/*.test.ts"], exclude: [special] }),
      // Properties and schedules by fast-check.
      project("model", 180_000),
      // A real PostgreSQL.
      project("pg", 60_000, { globalSetup: "packages/testkit/src/postgres-setup.ts" }),
      // A real Redis.
      project("redis", 60_000, { globalSetup: "packages/testkit/src/redis/setup.ts" }),
      // Real servers and command lines, one or a few processes of each.
      project("e2e", 180_000),
      // Storms: fleets of processes that are killed, frozen and set back for a while. IDMINT_LONG=1 makes them long.
      project("chaos", 180_000),
      // What is published: the packed tarballs.
      project("pack", 120_000, { globalSetup: "packages/testkit/test/pack.setup.ts" }),
    ],
  },
});
