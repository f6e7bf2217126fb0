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
];
