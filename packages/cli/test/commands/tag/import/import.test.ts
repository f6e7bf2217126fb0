import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { IdmintError } from "@idmint/core";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { targetsOf } from "../../../../src/commands/tag/import/plan.ts";
import { type Count, countsOfDump } from "../../../../src/commands/tag/import/sources.ts";
import { LEAF, POSTGRES, SHOP, tinyid } from "./dumps.ts";
import { idmint } from "../../../support.ts";

const pairs = (counts: readonly Count[]): (readonly [string, bigint])[] =>
  counts.map(({ name, highest }) => [name, highest]);

test("what each maker has given out, out of its dump", () => {
  expect(pairs(countsOfDump("leaf", LEAF, "d"))).toEqual([
    ["leaf-segment-test", 2_001n],
    ["orders", 9_007_199_254_740_993n],
  ]);
  expect(pairs(countsOfDump("tinyid", tinyid(300_001), "d"))).toEqual([
    ["test", 300_001n],
    ["test_odd", 5_000n],
  ]);
  expect(pairs(countsOfDump("mysql", SHOP, "d"))).toEqual([
    ["orders", 48_212n],
    ["payments", 90n],
  ]);
  expect(pairs(countsOfDump("postgres", POSTGRES, "d"))).toEqual([
    ["orders_id_seq", 9_001n],
    ["billing.Invoice_no_seq", 730n],
    ["fresh", 499n],
  ]);
});

test("Leaf's and Tinyid's tables are read from PostgreSQL too", () => {
  const dump = `-- PostgreSQL database dump
CREATE TABLE public.leaf_alloc (biz_tag text, max_id bigint, step integer, description text);
COPY public.leaf_alloc (step, max_id, biz_tag, description) FROM stdin;
2000	6001	a\\\\b	\\N
\\.
`;
  expect(pairs(countsOfDump("leaf", dump, "d"))).toEqual([["a\\b", 6_001n]]);
});

const mysql = (...lines: string[]): string =>
  `CREATE TABLE leaf_alloc (biz_tag text, max_id bigint, step int);\n${lines.join("\n")}`;
const postgres = (...lines: string[]): string => `-- PostgreSQL database dump\n${lines.join("\n")}`;

test.each([
  ["leaf", "", "has nothing that counts"],
  ["leaf", mysql(), "has nothing that counts"],
  ["leaf", "INSERT INTO leaf_alloc VALUES ('a',1,1);", "dump it with CREATE TABLE"],
  [
    "leaf",
    mysql("INSERT INTO leaf_alloc VALUES ('a',1);"),
    "d:2 has a row of leaf_alloc with 2 of 3 values",
  ],
  ["leaf", mysql("INSERT INTO leaf_alloc VALUES ('a',NULL,1);"), "no whole number"],
  ["leaf", mysql("INSERT INTO leaf_alloc VALUES ('a',-5,1);"), `"-5" in max_id`],
  ["leaf", mysql("INSERT INTO leaf_alloc VALUES ('a',1+1,1);"), "no whole number"],
  ["leaf", mysql("INSERT INTO leaf_alloc VALUES (NULL,1,1);"), "without a biz_tag"],
  ["leaf", mysql("INSERT INTO leaf_alloc SELECT * FROM x;"), "without VALUES"],
  [
    "leaf",
    mysql("INSERT INTO leaf_alloc VALUES ('a',1,1) ON DUPLICATE KEY UPDATE max_id = 9;"),
    "by more than VALUES",
  ],
  ["leaf", mysql("UPDATE leaf_alloc SET max_id = 9;"), "a dump only fills tables"],
  ["leaf", mysql("DELETE FROM leaf_alloc;"), "a dump only fills tables"],
  ["leaf", mysql("INSERT INTO leaf_alloc VALUES ('a,1,1);"), "not closed"],
  ["leaf", mysql("INSERT INTO leaf_alloc VALUES ('a',1,"), "ends within a row"],
  ["leaf", mysql("/* INSERT"), "comment that does not end"],
  [
    "leaf",
    "CREATE TABLE leaf_alloc (biz_tag text, max bigint);INSERT INTO leaf_alloc VALUES ('a',1);",
    "without a column max_id",
  ],
  ["mysql", "USE a; CREATE TABLE t (id int AUTO_INCREMENT); USE b;", "dump one at a time"],
  ["mysql", "CREATE TABLE t (id int", "ends within a CREATE TABLE"],
  [
    "mysql",
    "CREATE TABLE t (id int AUTO_INCREMENT) AUTO_INCREMENT=x;",
    "x where a whole number belongs",
  ],
  ["postgres", postgres("CREATE SEQUENCE public.s;"), "pg_dump without --schema-only"],
  [
    "postgres",
    postgres("CREATE SEQUENCE s INCREMENT BY -1;", "SELECT setval('s', 5);"),
    "counts down",
  ],
  ["postgres", postgres("CREATE SEQUENCE s CYCLE;", "SELECT setval('s', 5);"), "starts again"],
  ["postgres", postgres("ALTER SEQUENCE s RESTART WITH 1;"), "dump the database again"],
  ["postgres", postgres("SELECT setval('s', 'x');"), "where a whole number belongs"],
  ["postgres", postgres("CREATE FUNCTION f() AS $x$ SELECT 1;"), "does not end"],
] as const)("a dump of %s that says too little is refused: %s", (source, text, told) => {
  expect(() => countsOfDump(source, text, "d")).toThrow(told);
});

// Texts that look like SQL, in every place where a text may stand.
const TEXT = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.constantFrom(
    "'); INSERT INTO leaf_alloc VALUES ('evil',9,9); --",
    "\\",
    "'",
    '"',
    "`",
    "/*",
    "--",
    "\\'",
    "a,b)",
    "\n;\n",
  ),
);
const ROW = fc.record({ name: TEXT, max: fc.bigInt(0n, 2n ** 63n), text: fc.option(TEXT) });

// A text without a byte that mysqldump writes as a letter behind a backslash.
const quoted = (text: string): string =>
  `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

test("no text of a row is ever taken for another row, and none is lost", () => {
  fc.assert(
    fc.property(fc.array(ROW, { minLength: 1, maxLength: 6 }), (rows) => {
      const named = rows.map((row, at) => ({ ...row, name: `${at}${row.name}` }));
      const values = named.map(
        ({ name, max, text }) =>
          `(${quoted(name)},${max},5,${text === null ? "NULL" : quoted(text)})`,
      );
      const dump = `CREATE TABLE \`leaf_alloc\` (\`biz_tag\` text, \`max_id\` bigint, \`step\` int, \`description\` text);\nINSERT INTO \`leaf_alloc\` VALUES ${values.join(",")};\n`;
      expect(pairs(countsOfDump("leaf", dump, "d"))).toEqual(
        named.map(({ name, max }) => [name, max]),
      );
    }),
    { numRuns: 500 },
  );
});

test("any text is read or refused with its place, in bounded time", () => {
  const pieces = [
    "INSERT INTO leaf_alloc VALUES",
    "CREATE TABLE leaf_alloc",
    "COPY t FROM stdin;",
    "(",
    ")",
    ",",
    ";",
    "'",
    "`",
    '"',
    "--",
    "/*",
    "*/",
    "$$",
    "\\",
    "\n",
    "1",
    "-",
    "SELECT setval('s',",
    "AUTO_INCREMENT=",
    "USE",
    "\\.",
  ];
  const text = fc
    .array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 5 })), { maxLength: 30 })
    .map((all) => all.join(" "));
  fc.assert(
    fc.property(text, fc.constantFrom("leaf", "tinyid", "mysql", "postgres"), (dump, source) => {
      try {
        countsOfDump(source, dump, "d");
      } catch (thrown) {
        if (!(thrown instanceof IdmintError) || thrown.code !== "INVALID_ARGUMENT") throw thrown;
      }
    }),
    { numRuns: 2_000 },
  );
});

const count = (name: string, highest: bigint): Count => ({ name, highest, because: "x" });
const options = { gap: 10n, names: new Map<string, string>(), only: [] };

test("one name in several databases is one tag, above the highest of them", () => {
  const counts = [count("a", 5n), count("a", 70n), count("a", 6n), count("b", 1n)];
  expect(targetsOf(counts, options).map(({ tag, floor }) => [tag, floor])).toEqual([
    ["a", 80n],
    ["b", 11n],
  ]);
  const some = { ...options, only: ["b"], names: new Map([["b", "bills"]]) };
  expect(targetsOf(counts, some).map(({ tag }) => tag)).toEqual(["bills"]);
});

test("names that no tag can have, floors past the end, and names that are not there are told together", () => {
  const counts = [count("no tag", 5n), count("end", 2n ** 63n - 11n)];
  const bad = { ...options, only: ["end", "no tag", "x"], names: new Map([["y", "z"]]) };
  const told = (() => {
    try {
      return String(targetsOf(counts, bad).length);
    } catch (thrown) {
      return IdmintError.from(thrown).message;
    }
  })();
  expect(told).toMatch(
    /nothing was changed\nx is not in[^]*y is not in[^]*--name[^]*end would have a floor/,
  );
});

const told = async (...args: string[]): Promise<string> => {
  const { exitCode, err } = await idmint(["tag", "import", ...args]);
  expect(exitCode).toBe(2);
  return err;
};

test("the gap is asked for, and sources and places are named", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-import-"));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const file = path.join(folder, "leaf.sql");
  writeFileSync(file, LEAF);
  expect(await told("leaf", file)).toContain("--gap");
  expect(await told("leaf", file, "--gap", "-1")).toContain("from 0 to");
  expect(await told("oracle", file, "--gap", "1")).toContain(
    "must be one of leaf, tinyid, mysql, postgres",
  );
  expect(await told("leaf", "/nowhere.sql", "--gap", "1")).toContain("ENOENT");
  expect(await told("leaf", "postgres://h/db", "--gap", "1")).toContain(
    "only postgres is read from a database",
  );
  expect(await told("postgres", "postgres://me:hunter2@h/db", "--gap", "1")).toMatch(
    /^(?![^]*hunter2)[^]*IDMINT_IMPORT_PASSWORD/,
  );
  expect(await told("leaf", file, "--gap", "1", "--name", "orders")).toContain("OLD=NEW");
});
