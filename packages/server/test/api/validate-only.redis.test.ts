// Every method that changes something, on a real store with real Redis servers: tried first, which changes nothing, and
// then done, which answers what the trial did.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  AdvanceTagRequest,
  CreateTagRequest,
  DeleteTagRequest,
  ListTagsRequest,
  MoveTagRequest,
  PauseTagRequest,
  PeriodUnit,
  ResumeTagRequest,
  ReturnToPeriodRequest,
  SequenceBackend,
  type Tag,
  TagServiceService,
  UpdateTagRequest,
} from "@idmint/proto";
import { serverEnv } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { startServer } from "../../src/main/app.ts";
import { loadConfig } from "../../src/config/load.ts";
import { makeStore } from "../../src/main/stores.ts";
import { sqlInAnotherProcess } from "../store/children.ts";
import { ownRedis } from "../store/redis/support.ts";
import { call, clientsOf, generateId, refusalOf } from "../support.ts";

type Place = Awaited<ReturnType<typeof startPlace>>;

async function startPlace() {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-validate-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [a, b] = [await ownRedis(), await ownRedis()];
  const file = path.join(folder, "idmint.db");
  const env = {
    ...serverEnv(),
    IDMINT_STORE_URL: `sqlite:${file}`,
    IDMINT_GRPC_ADDRESS: "127.0.0.1:0",
    IDMINT_HTTP_ADDRESS: "127.0.0.1:0",
    IDMINT_REDIS_URLS: `a=${a.url},b=${b.url}`,
    IDMINT_LOG_LEVEL: "silent",
    IDMINT_DRAIN_TIME: "200ms",
    IDMINT_STORE_TIMEOUT: "20s",
  };
  const config = loadConfig({ env });
  await makeStore(config);
  const server = await startServer(config);
  onTestFinished(() => server.close());
  return { server, file, ...clientsOf(server.grpcAddress) };
}

const SEGMENT = { $case: "segment", value: {} } as const;
const YEARLY = { $case: "sequence", value: { period: PeriodUnit.YEAR, timeZone: "UTC" } } as const;
const IN_REDIS = { $case: "sequence", value: { backend: SequenceBackend.REDIS } } as const;

/** A change of the tag `orders` (in Redis: `bills`), made with `validateOnly` or without. */
interface Change {
  /** What must be so before it can be made. */
  readonly before?: (place: Place) => Promise<unknown>;
  readonly make: (place: Place, validateOnly: boolean) => Promise<{ tag?: Tag | undefined }>;
  /** The tag that it changes. Default: orders. */
  readonly tag?: string;
  /** What it refuses, whether it is only tried or not. */
  readonly refused: (place: Place, validateOnly: boolean) => Promise<unknown>;
  /** What the refusal says of the way out. */
  readonly says: string;
}

const S = TagServiceService;
const MISSING = "idmint tag create nobody";
const named = (name: string, validateOnly: boolean) => ({ name, etag: "", validateOnly });

const CHANGES: Readonly<Record<string, Change>> = {
  createTag: {
    tag: "fresh",
    make: ({ tags }, validateOnly) => create(tags, { name: "fresh", kind: SEGMENT }, validateOnly),
    refused: ({ tags }, validateOnly) =>
      create(tags, { name: "orders", kind: SEGMENT, ceiling: 5n }, validateOnly),
    says: "ceiling is 9223372036854775807, not 5",
  },
  updateTag: {
    make: ({ tags }, validateOnly) => update(tags, "orders", validateOnly),
    refused: ({ tags }, validateOnly) => update(tags, "nobody", validateOnly),
    says: MISSING,
  },
  deleteTag: {
    make: ({ tags }, validateOnly) =>
      call(tags, S.deleteTag, DeleteTagRequest.fromPartial(named("orders", validateOnly))),
    refused: ({ tags }, validateOnly) =>
      call(tags, S.deleteTag, DeleteTagRequest.fromPartial(named("nobody", validateOnly))),
    says: MISSING,
  },
  advanceTag: {
    make: ({ tags }, validateOnly) => advance(tags, 5_000n, validateOnly),
    refused: ({ tags }, validateOnly) => advance(tags, 10n ** 15n, validateOnly),
    says: "set allow_large_raise",
  },
  pauseTag: {
    make: ({ tags }, validateOnly) =>
      call(tags, S.pauseTag, PauseTagRequest.fromPartial(named("orders", validateOnly))),
    refused: ({ tags }, validateOnly) =>
      call(tags, S.pauseTag, PauseTagRequest.fromPartial(named("nobody", validateOnly))),
    says: MISSING,
  },
  resumeTag: {
    before: ({ tags }) =>
      call(tags, S.pauseTag, PauseTagRequest.fromPartial(named("orders", false))),
    make: ({ tags }, validateOnly) =>
      call(tags, S.resumeTag, ResumeTagRequest.fromPartial(named("orders", validateOnly))),
    refused: ({ tags }, validateOnly) =>
      call(tags, S.resumeTag, ResumeTagRequest.fromPartial(named("nobody", validateOnly))),
    says: MISSING,
  },
  returnToPeriod: {
    tag: "years",
    before: async ({ tags, ids, file }) => {
      await create(tags, { name: "years", kind: YEARLY }, false);
      await generateId({ ids }, "years");
      // As if it had begun the year 2099.
      sqlInAnotherProcess(file, "UPDATE tag SET period_start = '2099-01-01' WHERE name = 'years'");
    },
    make: ({ tags }, validateOnly) => returnTo(tags, "2098", validateOnly),
    refused: ({ tags }, validateOnly) => returnTo(tags, "2100", validateOnly),
    says: "must be before the present one, 2099-01-01",
  },
  moveTag: {
    tag: "bills",
    make: async (place, validateOnly) => move(place, await otherRedisServer(place), validateOnly),
    refused: (place, validateOnly) => move(place, "c", validateOnly),
    says: "which are a, b",
  },
};

function create(tags: Place["tags"], tag: object, validateOnly: boolean) {
  return call(tags, S.createTag, CreateTagRequest.fromPartial({ tag, validateOnly }));
}

function update(tags: Place["tags"], name: string, validateOnly: boolean) {
  const tag = { name, description: "changed" };
  const request = { tag, updateMask: ["description"], validateOnly };
  return call(tags, S.updateTag, UpdateTagRequest.fromPartial(request));
}

function advance(tags: Place["tags"], floor: bigint, validateOnly: boolean) {
  const request = { name: "orders", floor, validateOnly };
  return call(tags, S.advanceTag, AdvanceTagRequest.fromPartial(request));
}

function returnTo(tags: Place["tags"], period: string, validateOnly: boolean) {
  const request = { name: "years", period, floor: 7n, validateOnly };
  return call(tags, S.returnToPeriod, ReturnToPeriodRequest.fromPartial(request));
}

function move({ tags }: Place, redisServer: string, validateOnly: boolean) {
  const request = { name: "bills", redisServer, validateOnly };
  return call(tags, S.moveTag, MoveTagRequest.fromPartial(request));
}

/** The one that `bills` is not on. */
async function otherRedisServer(place: Place): Promise<string> {
  const bills = (await allTags(place)).find(({ name }) => name === "bills");
  const { redisServer } =
    bills?.kind?.$case === "sequence" ? bills.kind.value : { redisServer: "" };
  return redisServer === "a" ? "b" : "a";
}

async function allTags({ tags }: Place): Promise<readonly Tag[]> {
  const request = ListTagsRequest.fromPartial({ showDeleted: true });
  return (await call(tags, S.listTags, request)).tags;
}

/** What one answer may say and the other not: when it was, and how far others had got by then. */
function withoutTimes(answer: { tag?: Tag | undefined }): object {
  const { createTime: _, updateTime: __, ...tag } = answer.tag!;
  return { ...answer, tag, effectiveTime: undefined };
}

test("there is a case of every method that changes tags", () => {
  const changes = Object.keys(TagServiceService).filter((name) => !/^(get|list|lookup)/.test(name));
  expect(Object.keys(CHANGES).toSorted()).toEqual(changes.toSorted());
});

test.each(Object.entries(CHANGES))(
  "%s with validate_only changes nothing, and answers what the change then answers",
  { timeout: 60_000 },
  async (_, { before, make, tag = "orders", refused, says }) => {
    const place = await startPlace();
    await create(place.tags, { name: "orders", kind: SEGMENT }, false);
    await create(place.tags, { name: "bills", kind: IN_REDIS }, false);
    expect((await generateId(place, "bills")).id).toBe(1n);
    await before?.(place);
    const old = await allTags(place);
    const tried = await make(place, true);
    expect(await allTags(place)).toEqual(old);
    // Redis was told nothing either: it would begin anew above.
    expect((await generateId(place, "bills")).id).toBe(2n);
    expect(await allTags(place)).toEqual(old);
    const [asTried, asDone] = [
      await refusalOf(refused(place, true)),
      await refusalOf(refused(place, false)),
    ];
    expect(asTried).toEqual(asDone);
    expect(asTried.message).toContain(says);
    const done = await make(place, false);
    expect(withoutTimes(done)).toEqual(withoutTimes(tried));
    const present = await allTags(place);
    expect(present).not.toEqual(old);
    expect(present.find(({ name }) => name === tag)).toEqual(done.tag);
  },
);
