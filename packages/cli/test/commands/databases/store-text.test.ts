import type { MigrationReport, StoreStatus } from "@idmint/server";
import { expect, test } from "vitest";
import { bannerText } from "../../../src/text/banner.ts";
import {
  migrationJson,
  migrationText,
  storeIllness,
  storeStatusText,
} from "../../../src/commands/databases/store-text.ts";

const REPORT: MigrationReport = {
  from: 0,
  to: 1,
  steps: [{ number: 1, name: "store and tags", worksFrom: 1, sql: "CREATE …" }],
  created: true,
};

test("a migration says what was done, and a dry run what would be", () => {
  expect(migrationText(REPORT, false)).toBe(
    "the schema went from 0 to 1, in a store made for it\n  1  store and tags  applied\n",
  );
  expect(migrationText(REPORT, true)).toBe(
    "the schema would go from 0 to 1, in a new store\n  1  store and tags  would be applied\n",
  );
  expect(migrationText({ ...REPORT, from: 1, steps: [], created: false }, false)).toBe(
    "schema 1 is up to date\n",
  );
  expect(migrationJson(REPORT, true)).toEqual({
    from: 0,
    to: 1,
    created: true,
    dryRun: true,
    steps: [{ number: 1, name: "store and tags", worksFrom: 1 }],
  });
  const step = { number: 2, name: "more", sql: "ALTER …" };
  const next = { from: 1, to: 2, created: false };
  expect(migrationText({ ...next, steps: [{ ...step, worksFrom: 1 }] }, true)).toBe(
    "the schema would go from 1 to 2\n  2  more  would be applied  servers of schema 1 and later go on\n",
  );
  expect(migrationText({ ...next, steps: [{ ...step, worksFrom: 2 }] }, true)).toBe(
    "the schema would go from 1 to 2\n  2  more  would be applied  stop all older servers first\n",
  );
});

const STATUS: StoreStatus = {
  backend: "sqlite",
  schemaVersion: 1,
  knownSchemaVersion: 1,
  schemaIllness: "",
  storeId: "s",
  incarnation: "i",
  revision: 2n ** 60n,
  stoppedTime: "",
  tags: 3,
  acceptedIdentity: "1/2",
  presentIdentity: "1/2",
  fenced: "",
  standbys: "",
  unsafe: [],
  timeMs: undefined,
};

test("the status of a store says whether it grants", () => {
  expect(storeStatusText(STATUS)).toContain("revision           1152921504606846976\n");
  expect(storeStatusText(STATUS)).toContain("grants             yes\n");
  expect(storeStatusText(STATUS)).not.toContain("standbys");
  expect(storeStatusText(STATUS)).not.toContain("stopped");
  const stopped = storeStatusText({ ...STATUS, stoppedTime: "2026-11-22T10:00:00.000Z" });
  expect(stopped).toContain("stopped  since 2026-11-22T10:00:00.000Z; resumed by: idmint resume-");
  const pair: StoreStatus = { ...STATUS, backend: "postgres" };
  expect(storeStatusText(pair)).toContain("standbys           none that all answers wait for\n");
  expect(storeStatusText({ ...pair, standbys: "b" })).toContain("standbys           b\n");
  expect(storeStatusText(STATUS)).not.toContain("member");
  const members = ["a:1 does not answer", "b:1 is passed over"];
  const cluster = storeStatusText({ ...STATUS, members });
  for (const trouble of members) expect(cluster).toContain(`member             ${trouble}\n`);
  expect(storeIllness(STATUS)).toBe(undefined);
  const fenced = { ...STATUS, fenced: "it is a copy\u001B" };
  expect(storeStatusText(fenced)).toContain("grants             no: it is a copy\\u001b\n");
  expect(storeIllness(fenced)).toContain("it is a copy");
  const empty = { ...STATUS, schemaVersion: 0, schemaIllness: "run: idmint migrate" };
  expect(storeIllness(empty)).toContain("idmint migrate");
  expect(storeStatusText(empty)).toContain("grants             no: run: idmint migrate\n");
});

test("a status says what is wrong with a database, and whether it stops servers", () => {
  const found = {
    name: "encoding",
    isFatal: false,
    found: "it is LATIN1\u001B",
    fix: "make it anew",
  } as const;
  const odd = { ...STATUS, findings: [found] };
  expect(storeStatusText(odd)).toContain("database           it is LATIN1\\u001b; make it anew\n");
  expect(storeStatusText(odd)).toContain("grants             yes\n");
  expect(storeIllness(odd)).toBeUndefined();
  const bad = {
    ...STATUS,
    findings: [found, { ...found, name: "rights", isFatal: true, found: "it lacks" } as const],
  };
  expect(storeStatusText(bad)).toContain("grants             no: it lacks\n");
  expect(storeIllness(bad)).toBe("it lacks; make it anew");
});

test("a status names tags that all servers refuse", () => {
  const some = { ...STATUS, refusedTags: "2 tags, whose rows cannot be read: a\u001B, b" };
  const said = "2 tags, whose rows cannot be read: a\\u001b, b";
  expect(storeStatusText(some)).toContain(`grants             yes, but not of ${said}\n`);
  expect(storeIllness(some)).toBe(`it grants nothing of ${said}; see idmint store accept`);
  const fenced = { ...some, fenced: "it is a copy" };
  expect(storeStatusText(fenced)).toContain("grants             no: it is a copy\n");
});

const BANNER = "Mint an id:\n  grpcurl X\n  idmint id next demo";

test("the banner's commands can be typed where the banner is read", () => {
  expect(bannerText(BANNER, "127.0.0.1:7600", { env: {} })).toBe(`\n${BANNER}\n\n`);
  expect(bannerText(BANNER, "127.0.0.1:7700", { env: { IDMINT_COMMAND: "./idmint" } })).toBe(
    "\nMint an id:\n  grpcurl X\n  ./idmint id next demo --address 127.0.0.1:7700\n\n",
  );
});
