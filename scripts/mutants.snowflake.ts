import type { Mutant } from "./mutant.ts";
import { leaseMutants } from "./mutants.leases.ts";

const service = "packages/server/src/service";
const generator = "packages/core/src/snowflake/generator-state.ts";
const workerRegistry = "packages/core/src/server/worker/registry-state.ts";
const workerScripts = "packages/server/src/store/redis/worker-scripts.ts";
const redisWorkers = ["packages/server/test/store/redis/workers.redis.test.ts"];
const snowflakes = ["packages/core/test/snowflake/snowflake.model.test.ts"];
const formats = [
  "packages/core/test/server/format/format.test.ts",
  "packages/core/test/server/format/template.test.ts",
  "packages/core/test/server/format/injective.model.test.ts",
];
const unguessable = [
  "packages/core/test/unguessable/domain.test.ts",
  "packages/client/test/unguessable.test.ts",
];
const leaseKeeper = ["packages/server/test/service/lease-keeper.model.test.ts"];

/** Faults of ids from time, of ids that are text, and of ids that tell nothing. */
export const snowflakeMutants: readonly Mutant[] = [
  ...leaseMutants,
  {
    name: "snowflake: a worker id is its holder's for the time of a lease, whatever was reserved",
    file: generator,
    find: `tickAt(layout, reservedUntilMs + 1) - 1;`,
    replace: `tickAt(layout, reservedUntilMs + 30_000) - 1;`,
    tests: snowflakes,
  },
  {
    name: "snowflake: who takes a worker id over does not start above what was reserved",
    file: workerRegistry,
    find: `const notBeforeMs = before + 1;`,
    replace: `const notBeforeMs = rules.layout.timeOriginMs;`,
    tests: snowflakes,
  },
  {
    name: "snowflake: a reservation is raised without asking whose it is",
    file: workerRegistry,
    find: `if (row?.token === key.token) return row;`,
    replace: `if (row !== undefined) return row;`,
    tests: snowflakes,
  },
  {
    name: "snowflake: a database leases worker ids of a tag that moved away",
    file: "packages/server/src/store/postgres/worker-leases.ts",
    find: `      if (row.is_elsewhere) throw new TagMovedError(tag);
`,
    replace: ``,
    tests: ["packages/server/test/store/spread-workers.pg.test.ts"],
  },
  {
    name: "snowflake: a used up sequence is not carried to the next tick",
    file: generator,
    find: `    state.tick++;
`,
    replace: ``,
    tests: snowflakes,
  },
  {
    name: "snowflake: the sequence begins again before it is known that the clock went on",
    file: generator,
    find: `  if (clockTick < state.tick) return`,
    replace: `  if (clockTick !== state.tick) state.sequence = 0;
  if (clockTick < state.tick) return`,
    tests: snowflakes,
  },
  {
    name: "snowflake: worker ids begin again at 0",
    file: workerRegistry,
    find: `if (used >= 2 ** layout.workerBits) return undefined;`,
    replace: `used %= 2 ** layout.workerBits;`,
    tests: snowflakes,
  },
  {
    name: "snowflake: the next extension is taken up before it is saved",
    file: "packages/core/src/worker/lease-state.ts",
    find: `  return [{ type: "renew", call, renewal }];`,
    replace: `  const early = { ...held, extension, reservedUntilMs: reserveUntilMs };
  if (extension === held.extension) return [{ type: "renew", call, renewal }];
  return [
    { type: "take-up", lease: early, notBeforeMs: 0 },
    { type: "renew", call, renewal },
  ];`,
    tests: snowflakes,
  },
  {
    name: "snowflake: a token is good for more than one renewal",
    file: workerRegistry,
    find: `    reservedUntilMs: reserved.reservedUntilMs,
    token: held.token + 1n,`,
    replace: `    reservedUntilMs: reserved.reservedUntilMs,
    token: held.token,`,
    tests: ["packages/core/test/snowflake/clones.model.test.ts"],
  },
  {
    name: "snowflake: leases of the history that a store lost go on after its accept",
    file: "packages/server/src/store/shared/worker-pool.ts",
    find: `  return token / TOKENS_OF_EPOCH === epoch ? row : undefined;`,
    replace: `  return epoch > 0n || token > TOKENS_OF_EPOCH ? row : undefined;`,
    tests: ["packages/server/test/store/sqlite.test.ts"],
    only: "accept",
  },
  {
    name: "snowflake: a block outlives the lease it was made under",
    file: "packages/core/src/snowflake/generator.ts",
    find: `    this.#endBlock();
    this.#baseTick = -1;`,
    replace: `    this.#baseTick = -1;`,
    tests: ["packages/core/test/snowflake/generator.test.ts"],
  },
  {
    name: "snowflake: an SDK goes on under the settings of an older epoch",
    file: "packages/client/src/kinds/snowflake-leases.ts",
    find: `if (answer.epoch === this.#epoch) return`,
    replace: `if (answer.epoch >= this.#epoch) return`,
    tests: ["packages/client/test/snowflake.test.ts"],
  },
  {
    name: "snowflake: Redis raises a reservation without asking whose it is",
    file: workerScripts,
    find: `or row.token ~= ARGV[5] then return {'lost'} end
local before =`,
    replace: `then return {'lost'} end
local before =`,
    tests: redisWorkers,
  },
  {
    name: "snowflake: Redis reserves more than the store gave it",
    file: workerScripts,
    find: `if untilMs > before and untilMs > limit then return {'limit', text(untilMs)} end
`,
    replace: ``,
    tests: redisWorkers,
  },
  {
    name: "snowflake: worker ids of Redis begin again at 0",
    file: workerScripts,
    find: `if not old and used < tonumber(ARGV[7]) then`,
    replace: `if not old then
  used = used % tonumber(ARGV[7])`,
    tests: redisWorkers,
  },
  {
    name: "text: the keys of unguessable ids permute one domain",
    file: "packages/core/src/unguessable/domain.ts",
    find: `return BigInt(keyId) * domain.scale + hidden;`,
    replace: `return domain.scale + hidden;`,
    tests: unguessable,
  },
  {
    name: "text: a walk of the permutation ends outside the domain",
    file: "packages/core/src/unguessable/domain.ts",
    find: `    if (value < ceiling) return value + 1n;`,
    replace: `    return (value % ceiling) + 1n;`,
    tests: unguessable,
  },
  {
    name: "text: a server takes another key under the number of a tag's key",
    file: `${service}/issue/tag-text.ts`,
    find: `if (key.check !== check) throw keyDiffers(tag, each);`,
    replace: ``,
    tests: ["packages/server/test/text-ids.e2e.test.ts"],
  },
  {
    name: "text: serials of the hour that is repeated are the same",
    file: "packages/core/src/server/format/template.ts",
    find: `if ("name" in zone && !pattern.includes("xx" satisfies DateToken)) {`,
    replace: `if ("name" in zone && pattern.length === 0) {`,
    tests: formats,
  },
  {
    name: "text: a tag is made whose ids will outgrow their padding",
    file: "packages/core/src/server/format/faults.ts",
    find: `    if (needed <= part.width) return [];`,
    replace: `    if (needed > 0) return [];`,
    tests: formats,
  },
  {
    name: "text: a number that outgrew its padding wraps",
    file: "packages/core/src/server/format/radix.ts",
    find: `  if (digits.length > width) return undefined;`,
    replace: `  if (digits.length > width) return digits.slice(-width);`,
    tests: ["packages/core/test/server/format/radix.test.ts"],
  },
  {
    name: "text: the end of a number without a width cannot be told",
    file: "packages/core/src/server/format/faults.ts",
    find: `    if (!isVariable(part) || at === last) return [];`,
    replace: `    if (!isVariable(part) || at <= last) return [];`,
    tests: formats,
  },
  {
    name: "text: a format is made without the machine that its ids have",
    file: "packages/core/src/server/format/faults.ts",
    find: `snowflake[bits] > 0 && !shows(name as FieldName)`,
    replace: `bits !== "workerBits" && snowflake[bits] > 0 && !shows(name as FieldName)`,
    tests: formats,
  },
  {
    name: "text: a template changes while ids written by it are out there",
    file: "packages/server/src/store/shared/change.ts",
    find: `  if (old.format?.template !== next.format?.template) return false;`,
    replace: ``,
    tests: ["packages/server/test/store/text-settings.test.ts"],
  },
  {
    name: "text: the sequences of UUIDs of version 2 begin again when they are used up",
    file: "packages/core/src/uuid/dce-state.ts",
    find: `    state.node = randomNode(random);
    state.sequence = 0;
  } else {`,
    replace: `    state.sequence = 0;
  } else {`,
    tests: ["packages/core/test/uuid/states.test.ts"],
  },
  {
    name: "text: an ObjectId follows a clock that went back",
    file: "packages/core/src/uuid/object-id-state.ts",
    find: `  if (now > state.second) {`,
    replace: `  if (now !== state.second) {`,
    tests: ["packages/core/test/uuid/states.test.ts"],
  },
  {
    name: "text: a zone's offset is kept for a quarter of an hour",
    file: "packages/core/src/server/format/format.ts",
    find: `Math.floor(ms / 1_000);`,
    replace: `Math.floor(ms / 900_000);`,
    tests: ["packages/server/test/text-zones.test.ts"],
  },
  {
    name: "text: a check digit of small letters is a capital",
    file: "packages/core/src/server/format/format.ts",
    find: `part.isLowerCase ? digits.toLowerCase() : digits`,
    replace: `digits`,
    tests: formats,
  },
  {
    name: "text: a UUID of version 2 is made in a domain that there is not",
    file: "packages/core/src/uuid/makers.ts",
    find: `if (!Object.hasOwn(DCE_DOMAINS, domain)) {`,
    replace: `if (domain === undefined) {`,
    tests: ["packages/core/test/uuid/states.test.ts"],
  },
  {
    name: "clock: the cache file without the reservation",
    file: "packages/core/src/server/worker/kept-lease-state.ts",
    find: `  const notBeforeMs = kept.usedUntilMs + 1;`,
    replace: `  const notBeforeMs = 0;`,
    tests: leaseKeeper,
  },
  {
    name: "clock: the cache file goes beyond what the registry reserved",
    file: "packages/core/src/server/worker/kept-lease-state.ts",
    find: `Math.min(untilMs, kept.reservedUntilMs)`,
    replace: `untilMs`,
    tests: leaseKeeper,
  },
  {
    name: "clock: time is used before it is in the cache file",
    file: `${service}/worker-ids/lease-keeper.ts`,
    find: `    const answer = answerOf(held.kept, clock.now());
    await this.#write();`,
    replace: `    const answer = answerOf(held.kept, clock.now());
    void this.report();`,
    tests: leaseKeeper,
  },
  {
    name: "clock: a jump within the kept minute is believed",
    file: "packages/core/src/server/worker/kept-lease-state.ts",
    find: `  return used(kept, Math.min(reserveUntilMs, Math.floor(furthest)));`,
    replace: `  return used(kept, reserveUntilMs);`,
    tests: leaseKeeper,
  },
  {
    name: "clock: a copy of the cache file is taken for the file",
    file: "packages/server/src/store/kept/contents.ts",
    find: `    if (lock !== origin.lock) return { ignored: "it is a copy" };`,
    replace: ``,
    tests: ["packages/server/test/store/lease-file.test.ts"],
  },
  {
    name: "clock: the lock of the cache file ends before its last write",
    file: "packages/server/src/store/kept/lease-file.ts",
    find: `      await writing;`,
    replace: ``,
    tests: ["packages/server/test/store/lease-file.test.ts"],
  },
  {
    name: "clock: a server starts behind its last report",
    file: "packages/core/src/server/worker/clock-check-state.ts",
    find: `wallMs >= reportedMs) return undefined;`,
    replace: `wallMs >= reportedMs - 60_000) return undefined;`,
    tests: ["packages/core/test/server/worker/clock-check.model.test.ts"],
  },
  {
    name: "clock: a jump ahead confirms itself",
    file: "packages/core/src/server/worker/clock-check-state.ts",
    find: `  if (seen.length === 0 && confirmed !== undefined) {`,
    replace: `  if (confirmed !== undefined && wallMs - timeAt(confirmed, now) <= MAX_JUMP_MS * 2) {`,
    tests: ["packages/core/test/server/worker/clock-check.model.test.ts"],
  },
  {
    name: "clock: a peer with a wrong clock takes running servers out",
    file: "packages/core/src/server/worker/clock-check-state.ts",
    find: `  if (state.isStarted || driftMs === undefined) return undefined;`,
    replace: `  if (driftMs === undefined) return undefined;`,
    tests: ["packages/core/test/server/worker/clock-check.model.test.ts"],
  },
  {
    name: "clock: a server that refuses for its clock stays in service",
    file: `${service}/node.ts`,
    find: `drain.leaving !== undefined || clocks.watch.isOut ||`,
    replace: `drain.leaving !== undefined ||`,
    tests: ["packages/server/test/clocks.e2e.test.ts"],
  },
];
