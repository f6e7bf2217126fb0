// Quotas of administrators: those of some tags, and those of all.
import { createHash } from "node:crypto";
import { type Right, type Token, tokenText } from "@idmint/core/server";
import {
  AccessServiceService,
  CreateTagRequest,
  NodeServiceService,
  PauseTagRequest,
  RevokeTokenRequest,
  StopIssuingRequest,
  TagServiceService,
} from "@idmint/proto";
import { AccessServiceClient } from "@idmint/proto/grpc-js";
import { credentials } from "@grpc/grpc-js";
import { MemoryStore } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import {
  call,
  createTag,
  generateId,
  refusalOf,
  startTest,
  type TestServer,
  until,
} from "../../support.ts";

const SECRET = "s".repeat(43);

function tokenOf(id: string, principal: string, rights: readonly Right[]): Token {
  const hash = createHash("sha256").update(SECRET).digest("hex");
  return { id, principal, rights, hash, createdAtMs: 0, expiresAtMs: Date.now() + 86_400_000 };
}

const TENANT = tokenOf("00000000000000aa", "tenant", [{ role: "admin", tags: "t.*" }]);
const OPS = tokenOf("00000000000000bb", "ops", [{ role: "admin", tags: "*" }]);
const BOT = tokenOf("00000000000000cc", "bot", [{ role: "admin", tags: "*" }]);
const SPARE = tokenOf("00000000000000dd", "spare", [{ role: "issue", tags: "*" }]);
const textOf = ({ id }: Token): string => tokenText({ id, secret: SECRET });

async function started(flags: Record<string, string>): Promise<TestServer> {
  const store = new MemoryStore();
  const it = await startTest({ store, flags });
  await createTag(it, "t.one");
  for (const token of [TENANT, OPS, BOT, SPARE]) await store.addToken(token);
  await until(() =>
    generateId(it, "t.one").then(
      () => false,
      () => true,
    ),
  );
  return it;
}

function make({ tags }: TestServer, by: Token, name: string, validateOnly = false) {
  const tag = { name, kind: { $case: "segment" as const, value: {} } };
  const request = CreateTagRequest.fromPartial({ tag, validateOnly });
  return call(tags, TagServiceService.createTag, request, 10_000, textOf(by));
}

function pause({ tags }: TestServer, by: Token) {
  const request = PauseTagRequest.fromPartial({ name: "t.one" });
  return call(tags, TagServiceService.pauseTag, request, 10_000, textOf(by));
}

/** How many of the calls were answered; the others are over a quota. */
async function answered(quota: string, calls: readonly Promise<unknown>[]): Promise<number> {
  const settled = await Promise.all(
    calls.map((each) =>
      each.then(
        () => undefined,
        (error: unknown) => error,
      ),
    ),
  );
  for (const error of settled) {
    if (error !== undefined)
      expect(error).toMatchObject({ reason: "QUOTA_EXCEEDED", metadata: { quota } });
  }
  return settled.filter((error) => error === undefined).length;
}

const times = <T>(count: number, what: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => what(at));

test("who administers some tags makes so many calls and tags a second, and those who administer all are not kept from it", async () => {
  const it = await started({ "quota-admin-calls": "40", "quota-admin-tags": "10" });
  const began = performance.now();
  const made = await answered(
    "admin_tags",
    times(30, (at) => make(it, TENANT, `t.${at}`)),
  );
  const seconds = (performance.now() - began) / 1_000;
  expect(made).toBeGreaterThanOrEqual(10);
  expect(made).toBeLessThanOrEqual(10 + 10 * seconds + 1);
  expect(
    await answered(
      "admin_tags",
      times(30, (at) => make(it, OPS, `ops.${at}`)),
    ),
  ).toBe(30);
  await until(() =>
    make(it, TENANT, "t.check", true).then(
      () => true,
      () => false,
    ),
  );
  const pausedFrom = performance.now();
  const paused = await answered(
    "admin_calls",
    times(100, () => pause(it, TENANT)),
  );
  expect(paused).toBeLessThanOrEqual(40 + 40 * ((performance.now() - pausedFrom) / 1_000) + 1);
  expect(
    await answered(
      "admin_calls",
      times(100, () => pause(it, OPS)),
    ),
  ).toBe(100);
});

test("who administers all tags has a quota by name, and is never refused to pause, stop or revoke for it", async () => {
  const it = await started({ "quota-admin-calls": "50,bot=1", "quota-burst": "1s" });
  const access = new AccessServiceClient(it.server.grpcAddress, credentials.createInsecure());
  onTestFinished(() => access.close());
  expect(
    await answered(
      "admin_calls",
      times(5, (at) => make(it, BOT, `bot.${at}`)),
    ),
  ).toBeLessThan(5);
  expect(await refusalOf(make(it, BOT, "more"))).toMatchObject({
    code: "RESOURCE_EXHAUSTED",
    message: expect.stringContaining(
      'admin "bot" is over its quota of 1 calls/s (quota.admin_calls)',
    ) as string,
  });
  await Promise.all(times(20, () => pause(it, BOT)));
  const stop = StopIssuingRequest.fromPartial({});
  await Promise.all(
    times(5, () => call(it.nodes, NodeServiceService.stopIssuing, stop, 10_000, textOf(BOT))),
  );
  const revoke = RevokeTokenRequest.fromPartial({ tokenId: SPARE.id });
  await call(access, AccessServiceService.revokeToken, revoke, 10_000, textOf(BOT));
});
