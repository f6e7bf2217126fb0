import type { Mutant } from "./mutant.ts";

const store = "packages/server/src/store";
const tests = "packages/server/test/store";

/** What changes under servers that run: the release, the schema. */
export const rollingMutants: readonly Mutant[] = [
  {
    name: "a server works with any newer schema",
    file: `${store}/shared/migration.ts`,
    find: "    if (step === undefined && worksFrom > known.length) {",
    replace: "    if (step === undefined && worksFrom > number) {",
    tests: [`${tests}/migration.test.ts`],
  },
  {
    name: "a migration waits for its locks as long as any statement",
    file: `${store}/postgres/migrate.ts`,
    find: "  await session.query({ text: `SET LOCAL lock_timeout = '${LOCK_MS}ms'` });\n",
    replace: "",
    tests: [`${tests}/migrate.pg.test.ts`],
    only: "does not get its locks",
  },
  {
    name: "an operator's change in a SQLite file empties columns that this release does not know",
    file: `${store}/sqlite/tags.ts`,
    find: "  ON CONFLICT (name) DO UPDATE SET ${EXCLUDED}`;",
    replace: '`.replace("INSERT", "INSERT OR REPLACE");',
    tests: [`${tests}/sqlite.test.ts`],
    only: "newer release",
  },
  {
    name: "a server is ready before it knows the tags that were used last",
    file: "packages/server/src/main/app.ts",
    find: "    await knowRecentTags(",
    replace: "    void knowRecentTags(",
    tests: ["packages/server/test/recent-tags.test.ts"],
  },
  {
    name: "a server that starts waits for the tags that were used last however long it takes",
    file: "packages/server/src/service/issue/recent-tags.ts",
    find: "within(() => store.recentTags(limit), RECENT_MS, timers)",
    replace: "within(() => store.recentTags(limit), 100 * RECENT_MS, timers)",
    tests: ["packages/server/test/recent-tags.test.ts"],
  },
];
