import type { Config, RedisStanding, StoreStatus } from "@idmint/server";
import { plain } from "../../process/plain.ts";
import { allWellOr, type Check, fail, type Finding, ok, warn } from "./checks.ts";
import { type ClockSeen, seen } from "./clocks.ts";

const REACH_FIX =
  "start the database, or correct store.url and IDMINT_STORE_PASSWORD; then look at firewalls on the way";

/** What a configuration says of stores: the database and the Redis servers behind a server. */
export async function storeChecks(
  config: Config,
  boundMs: number,
  clocks: ClockSeen[],
): Promise<readonly Check[]> {
  const { redisPlacesOf, redisStanding, storeConfigOf, storePlace, storeStatus } =
    await import("@idmint/server");
  let status: StoreStatus | undefined;
  const look = async (): Promise<readonly Finding[]> => {
    const sentAt = Date.now();
    status = await storeStatus(storeConfigOf(config));
    if (status.timeMs !== undefined) clocks.push(seen("the store", status.timeMs, sentAt));
    return [ok(plain(storePlace(config)))];
  };
  const followUp = (name: string, findings: (its: StoreStatus) => readonly Finding[]): Check => ({
    name,
    needs: ["store"],
    late: REACH_FIX,
    look: async () => (status === undefined ? [] : findings(status)),
  });
  return [
    { name: "store", late: REACH_FIX, look },
    followUp("schema", schemaFindings),
    {
      name: "store id",
      needs: ["store"],
      late: REACH_FIX,
      look: async () => (status === undefined ? [] : idFindings(status, await expectedId(config))),
    },
    followUp("store database", ({ findings }) => databaseFindings(findings)),
    followUp("store members", ({ members }) => memberFindings(members)),
    followUp("store settings", (its) => settingFindings(its, config.allowUnsafeStore)),
    ...redisPlacesOf(config).map((place): Check => ({
      name: `redis ${place.name}`,
      late: "start it, or correct redis.urls and IDMINT_REDIS_PASSWORD; then look at firewalls on the way",
      look: async () => redisFindings(await redisStanding(place, boundMs / 2)),
    })),
  ];
}

/** Which store a server of this configuration belongs to, and what says so. */
interface ExpectedId {
  readonly storeId: string | undefined;
  readonly by: string;
}

async function expectedId({ storeExpectId, snowflakeCacheFile }: Config): Promise<ExpectedId> {
  if (storeExpectId !== undefined) return { storeId: storeExpectId, by: "store.expect_id" };
  if (snowflakeCacheFile === undefined) return { storeId: undefined, by: "" };
  const { keptStoreId } = await import("@idmint/server");
  const storeId = await keptStoreId(snowflakeCacheFile);
  return { storeId, by: "the file beside snowflake.cache_file" };
}

/** A kept id is that of the first of several databases. */
export function idFindings(
  { storeId }: Pick<StoreStatus, "storeId">,
  { storeId: expected, by }: ExpectedId,
): readonly Finding[] {
  const first = /^default: ([^;]+)/.exec(storeId)?.[1] ?? storeId;
  const id = expected?.includes(": ") === true ? storeId : first;
  if (expected === undefined || expected === id) return [ok(plain(id))];
  return [
    fail(
      `another store answers: its id is ${plain(id)}, and ${by} says ${plain(expected)}`,
      "mend store.url; if the store was changed on purpose, see idmint store adopt",
    ),
  ];
}

function schemaFindings(status: StoreStatus): readonly Finding[] {
  const { schemaVersion, knownSchemaVersion, schemaIllness, fenced, refusedTags = "" } = status;
  const isOlder = schemaVersion < knownSchemaVersion;
  const migrate = "idmint migrate --dry-run, then idmint migrate --yes";
  return allWellOr(
    [
      schemaIllness === ""
        ? undefined
        : fail(plain(schemaIllness), isOlder ? migrate : "upgrade idmint on this machine"),
      schemaIllness === "" && isOlder
        ? warn(`schema ${schemaVersion} of ${knownSchemaVersion}`, migrate)
        : undefined,
      fenced === ""
        ? undefined
        : fail(
            `it grants nothing: ${plain(fenced)}`,
            "find out what happened to it, then idmint store accept --gap N (docs/restore.md)",
          ),
      refusedTags === ""
        ? undefined
        : fail(
            `it grants nothing of ${plain(refusedTags)}`,
            "find out who changed them, then idmint store accept --gap N (docs/operations.md)",
          ),
    ],
    `schema ${schemaVersion}, ${status.tags} tags`,
  );
}

/** Of a backend that looks for nothing there is nothing to say. */
export function databaseFindings(findings: StoreStatus["findings"]): readonly Finding[] {
  if (findings === undefined) return [];
  return allWellOr(
    findings.map(({ isFatal, found, fix }) => (isFatal ? fail : warn)(plain(found), fix)),
    "takes what servers write",
  );
}

/** Of a store without members there is nothing to say. */
export function memberFindings(members: readonly string[] | undefined): readonly Finding[] {
  if (members === undefined) return [];
  const fix =
    "start the member, or correct store.url: a server that does not know its store yet starts on members of one cluster only (docs/etcd.md)";
  return allWellOr(
    members.map((trouble) => warn(plain(trouble), fix)),
    "all of one cluster",
  );
}

/** What mends each unsafe setting. */
const SETTING_FIXES: Readonly<Record<string, string>> = {
  fsync: "set fsync = on in postgresql.conf and restart PostgreSQL",
  full_page_writes: "set full_page_writes = on in postgresql.conf and reload",
  synchronous_commit:
    "set synchronous_commit = on for the server's role; a pooler must lend whole sessions",
  client_min_messages: "reset client_min_messages of the server's role",
  synchronous_standby_names:
    "name the standbys in synchronous_standby_names again (docs/fail-over.md)",
  standbys: "name the standbys in synchronous_standby_names again (docs/fail-over.md)",
  network_filesystem: "move the SQLite file to a disk of this machine",
  shared_folder: "let nobody but the server's user write in the folder of the SQLite file",
  auto_compaction: "start etcd with --auto-compaction-retention (docs/etcd.md)",
};

export function settingFindings(
  { unsafe, standbys }: StoreStatus,
  allowed: readonly string[],
): readonly Finding[] {
  return allWellOr(
    unsafe.map((name) => {
      const fix = SETTING_FIXES[name] ?? "see docs/errors.md, STORE_UNSAFE";
      return allowed.includes(name)
        ? warn(`${name} is unsafe, and allowed by allow_unsafe_store`, fix)
        : fail(`${name} is unsafe: ids may repeat after a crash, so servers refuse`, fix);
    }),
    standbys === "" ? "safe" : `safe; every answer waits for ${plain(standbys)}`,
  );
}

export function redisFindings(standing: RedisStanding): readonly Finding[] {
  const { version, unfit, keepsLog, writesLog } = standing;
  // The text says what is wrong, and behind its colon or comma what to do.
  const [, found = unfit ?? "", fix = ""] = /^(.*?)(?:: |; )(.*)$/.exec(unfit ?? "") ?? [];
  return allWellOr(
    [
      unfit === undefined ? undefined : fail(found, fix),
      keepsLog
        ? undefined
        : warn(
            "it keeps no append-only file: after a restart each tag skips ids and starts anew",
            "set appendonly yes (CONFIG SET appendonly yes, and in redis.conf)",
          ),
      writesLog
        ? undefined
        : fail("it cannot write its append-only file", "look at the space on its disk"),
    ],
    `version ${plain(version)}, a master that keeps what it is told`,
  );
}
