import { afterAll, beforeAll, expect, test } from "vitest";
import { cli, type Served, serve, temporaryFolder } from "../spawn.ts";
import { idmint } from "../support.ts";

interface Fault {
  readonly exitCode: number;
  readonly reason: string;
  readonly fields: readonly string[];
}

let server: Served;
const { folder, remove } = temporaryFolder();

async function ok(...args: string[]): Promise<void> {
  const { exitCode, err } = await cli(args, { env: { IDMINT_ADDRESS: server.grpcAddress } });
  expect(exitCode, err).toBe(0);
}

beforeAll(async () => {
  server = await serve(["start-dev"], { cwd: folder });
  await ok("id", "next", "demo");
  await ok("tag", "create", "paused");
  await ok("tag", "pause", "paused");
  await ok("tag", "create", "short", "--ceiling", "3");
  await ok("id", "next", "short", "--count", "3");
  await ok("tag", "create", "daily", "--kind", "sequence", "--period", "day", "--time-zone", "UTC");
});

afterAll(async () => {
  const exitCode = await server.stop();
  remove();
  // Nothing that was typed may have hurt the server.
  expect(exitCode, server.words()).toBe(0);
});

const usage = (...fields: string[]): Fault => ({ exitCode: 2, reason: "INVALID_ARGUMENT", fields });
const fault = (exitCode: number, reason: string): Fault => ({ exitCode, reason, fields: [] });
/** What a server with other options would do. */
const notHere = (field: string): Fault => ({
  exitCode: 1,
  reason: "NOT_CONFIGURED",
  fields: [field],
});

/** What is typed, and what it ends with. */
const CASES: readonly (readonly [args: string, fault: Fault])[] = [
  // Refused before any call is made.
  ["", usage("command")],
  ["frobnicate", usage("frobnicate")],
  ["--frobnicate", usage("--frobnicate")],
  ["help frobnicate", usage("frobnicate")],
  ["tag", usage("command")],
  ["tag craete a", usage("craete")],
  ["id next", usage("TAG")],
  ["id next a b", usage("next")],
  ["id next demo --cuont 3", usage("--cuont")],
  ["id next demo --count", usage("--count")],
  ["id next demo --count 0", usage("--count")],
  ["id next demo --count -1", usage("--count")],
  ["id next demo --count 1e3", usage("--count")],
  ["id next demo --count 10000001", usage("--count")],
  ["id next demo --format xml", usage("--format")],
  ["id next demo --address localhost", usage("--address")],
  ["id next demo --address 127.0.0.1:99999", usage("--address")],
  ["id next demo --timeout 5", usage("--timeout")],
  ["id next demo --timeout 0ms", usage("--timeout")],
  ["id next demo --ca-file /nowhere/ca.pem", usage("--ca-file")],
  ["tag create", usage("NAME")],
  ["tag create a --min 0", usage("--min")],
  ["tag create a --max 1000000001", usage("--max")],
  ["tag create a --start 9223372036854775808", usage("--start")],
  ["tag create a --ceiling int16", usage("--ceiling")],
  ["tag create a --kind nanoid", usage("--kind")],
  ["tag create a --period day", usage("--period")],
  ["tag create a --kind sequence --min 5", usage("--min")],
  ["tag create a --kind sequence --period hour", usage("--period")],
  ["tag create a --kind sequence --period day --time-zone UTC --keep-for 12h", usage("--keep-for")],
  ["tag create a --kind sequence --backend etcd", usage("--backend")],
  ["tag create a --kind sequence --backend redis --step 0", usage("--step")],
  ["tag create a --kind redis-snowflake --shard 4096", usage("--shard")],
  ["tag create a --kind redis-snowflake --shard -1", usage("--shard")],
  ["tag create a --kind redis-snowflake --time-origin 2026-02-30", usage("--time-origin")],
  ["tag create a --kind redis-snowflake --slots 3", usage("--slots")],
  ["tag create a --kind ticket --slots 1025", usage("--slots")],
  ["tag create a --kind ticket --step 7", usage("--step")],
  ["tag create a --order sideways", usage("--order")],
  ["tag create a --hold-for 15", usage("--hold-for")],
  ["tag create a --max-age 25h", usage("--max-age")],
  ["tag update demo", usage("update")],
  ["tag update demo --backend redis", usage("--backend")],
  ["tag update demo --min 5 --keep-for 3d", usage("--keep-for")],
  ["tag periods", usage("NAME")],
  ["tag capacity", usage("NAME")],
  ["tag periods daily --limit 10001", usage("--limit")],
  ["tag move daily", usage("--to")],
  ["tag move --to b", usage("NAME")],
  ["tag advance demo", usage("--floor")],
  ["tag advance demo --floor 0", usage("--floor")],
  ["tag advance demo --floor 5", usage("--yes")],
  ["tag delete demo", usage("--yes")],
  ["stop-issuing --yes", usage("--all")],
  ["stop-issuing --all", usage("--yes")],
  ["resume-issuing --yes", usage("--all")],
  ["resume-issuing --all", usage("--yes")],
  ["tag list --limit 0", usage("--limit")],
  ["store", usage("command")],
  ["store accept", usage("--gap")],
  ["store accept --gap -5", usage("--gap")],
  ["store accept --yes --gap 10 --store-url mysql://x", usage("--store-url")],
  ["migrate --dry-rum", usage("--dry-rum")],
  ["serve --grpc-addres 127.0.0.1:0", usage("--grpc-addres")],
  ["serve --grpc-address 0.0.0.0:7600", usage("grpc.address")],
  ["serve --log-level loud", usage("--log-level")],
  ["serve --config /nowhere/idmint.yaml", usage("/nowhere/idmint.yaml")],
  // Refused by the server.
  ["id next no-such-tag", fault(3, "TAG_NOT_FOUND")],
  ["id next _x", usage("tag")],
  [`id next ${"n".repeat(129)}`, usage("tag")],
  ["id next paused", fault(1, "TAG_PAUSED")],
  ["id next short", fault(1, "TAG_EXHAUSTED")],
  ["tag create _x", usage("tag.name")],
  ["tag create a --order strict", usage("tag.order")],
  ["tag create a --min 10 --max 5", usage("tag.segment.min")],
  ["tag create a --start 100 --ceiling 50", usage("tag.segment.start")],
  ["tag create a --kind sequence --order unordered", usage("tag.order")],
  ["tag create a --kind sequence --period day", usage("tag.sequence.time_zone")],
  ["tag create a --kind sequence --time-zone UTC", usage("tag.sequence.time_zone")],
  [
    "tag create a --kind sequence --period day --time-zone Mars/Base",
    usage("tag.sequence.time_zone"),
  ],
  ["tag create a --kind sequence --keep-for 3d", usage("tag.sequence.keep_for")],
  ["tag create a --kind sequence --step 7", usage("tag.sequence.step")],
  [
    "tag create a --kind sequence --start 2 --period day --time-zone UTC",
    usage("tag.sequence.start"),
  ],
  ["tag create a --kind sequence --backend redis", notHere("tag.sequence.backend")],
  ["tag create a --kind redis-snowflake", notHere("tag.redis_snowflake")],
  [
    "tag create a --kind redis-snowflake --time-origin 2999-01-01",
    usage("tag.redis_snowflake.time_origin", "tag.redis_snowflake"),
  ],
  ["tag create a --kind ticket", notHere("tag.ticket")],
  ["tag create daily", fault(1, "TAG_EXISTS")],
  [`tag create a --description ${"d".repeat(257)}`, usage("tag.description")],
  ["tag create demo --min 7", fault(1, "TAG_EXISTS")],
  ["tag get no-such-tag", fault(3, "TAG_NOT_FOUND")],
  ["tag get _x", usage("name")],
  ["tag update no-such-tag --min 5", fault(3, "TAG_NOT_FOUND")],
  ["tag update demo --min 5 --etag stale", fault(1, "ETAG_MISMATCH")],
  ["tag update demo --ceiling js", fault(1, "FIELD_IMMUTABLE")],
  ["tag update demo --max 5", usage("tag.segment.min")],
  ["tag update daily --hold-for 5m", usage("update_mask")],
  ["tag update daily --step 7", usage("tag.sequence.step")],
  ["tag update demo --keep-for 3d", usage("update_mask")],
  ["tag periods no-such-tag", fault(3, "TAG_NOT_FOUND")],
  ["tag capacity no-such-tag", fault(3, "TAG_NOT_FOUND")],
  ["id who no-such-tag 1", fault(3, "TAG_NOT_FOUND")],
  ["id who demo x", usage("text")],
  ["id who daily 1", fault(1, "WRONG_KIND")],
  ["tag periods _x", usage("name")],
  ["tag periods daily --page-token nonsense", usage("page_token")],
  ["tag periods demo", fault(1, "WRONG_KIND")],
  ["tag return-to-period daily", usage("--period")],
  ["tag return-to-period daily --period 2026-11-22", usage("--yes")],
  ["tag return-to-period daily --period yesterday --yes", usage("period")],
  ["tag return-to-period daily --period 2026-11-22 --floor -1 --yes", usage("--floor")],
  ["tag return-to-period daily --period 2026-11-22 --yes", usage("period")],
  ["tag return-to-period demo --period 2026-11-22 --yes", fault(1, "WRONG_KIND")],
  ["tag return-to-period no-such-tag --period 2026-11-22 --yes", fault(3, "TAG_NOT_FOUND")],
  ["tag move daily --to b", notHere("redis_server")],
  ["tag move no-such-tag --to b", notHere("redis_server")],
  ["tag advance short --floor 4 --yes", usage("floor")],
  ["tag advance demo --floor 2000000000000 --yes", usage("floor")],
  ["tag advance no-such-tag --floor 5 --yes", fault(3, "TAG_NOT_FOUND")],
  ["tag pause no-such-tag", fault(3, "TAG_NOT_FOUND")],
  ["tag resume demo --etag stale", fault(1, "ETAG_MISMATCH")],
  ["tag delete no-such-tag --yes", fault(3, "TAG_NOT_FOUND")],
  ["tag list --page-token nonsense", usage("page_token")],
  ["tag list --prefix _", usage("prefix")],
  // Nobody there.
  ["id next demo --address 127.0.0.1:1", fault(4, "SERVER_UNAVAILABLE")],
  ["status --address 127.0.0.1:1", fault(4, "SERVER_UNAVAILABLE")],
  ["id next demo --tls", fault(4, "SERVER_UNAVAILABLE")],
  ["store status --store-url sqlite:/nowhere/idmint.db", fault(1, "SCHEMA_MISMATCH")],
  [
    "serve --store-url sqlite:/nowhere/idmint.db --http-address 127.0.0.1:0",
    fault(1, "SCHEMA_MISMATCH"),
  ],
];

test.concurrent.each(CASES)("idmint %s", async (line, wanted) => {
  const args = line.split(" ").filter((word) => word !== "");
  const env = { IDMINT_ADDRESS: server.grpcAddress };
  const json = await cli(["--json", ...args], { env, cwd: folder });
  const last = json.err.trimEnd().split("\n").at(-1) ?? "";
  const { error } = JSON.parse(last) as {
    error: { code: string; reason: string; fields: { field: string }[] };
  };
  const isUsage = error.code === "INVALID_ARGUMENT";
  const got = {
    exitCode: json.exitCode,
    // What is wrong with a field has many reasons; the exit code and the field are what matters here.
    reason: isUsage ? error.code : error.reason,
    fields: error.fields.map(({ field }) => field),
  };
  expect(got, json.err).toEqual(wanted);
  // As text it is the same, without a stack, and data is nowhere to be seen.
  const text = await idmint(args, { env });
  expect([text.exitCode, text.out, json.out]).toEqual([wanted.exitCode, "", ""]);
  expect(text.err).toContain(`idmint: ${error.reason}: `);
  expect(text.err).not.toMatch(/^ +at /m);
});

test("nothing that was refused has changed anything", async () => {
  const { out } = await cli(["tag", "list", "--json"], {
    env: { IDMINT_ADDRESS: server.grpcAddress },
  });
  const { tags } = JSON.parse(out) as { tags: { name: string; segment: { min: number } }[] };
  expect(tags.map(({ name }) => name)).toEqual(["daily", "demo", "paused", "short"]);
  expect(tags[1]?.segment.min).toBe(1_000);
});
