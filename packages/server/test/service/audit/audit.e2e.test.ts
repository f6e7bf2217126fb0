// Every change over the API has its row, and every refusal of a right; both are told to the log.
import { credentials, Metadata, status } from "@grpc/grpc-js";
import { IdmintError } from "@idmint/core";
import {
  AccessServiceService,
  AdvanceTagRequest,
  AuditKind,
  type AuditEvent,
  AuditServiceService,
  CreateTagRequest,
  CreateTokenRequest,
  DeleteTagRequest,
  DrainNodeRequest,
  GenerateIdRequest,
  IdServiceService,
  ListAuditEventsRequest,
  NodeServiceService,
  PauseTagRequest,
  PeriodUnit,
  ResumeTagRequest,
  ReturnToPeriodRequest,
  RevokeTokenRequest,
  Role,
  SetNodeWeightRequest,
  TagServiceService,
  TagState,
  UndrainNodeRequest,
  UpdateTagRequest,
} from "@idmint/proto";
import { AccessServiceClient, AuditServiceClient } from "@idmint/proto/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import type { Authorise } from "../../../src/api/method.ts";
import { isForAdmins } from "../../../src/api/need.ts";
import { call, refusalOf, startTest, type TestServer, until } from "../../support.ts";

async function list(
  { server }: TestServer,
  more: Parameters<typeof ListAuditEventsRequest.fromPartial>[0] = {},
): Promise<{ events: AuditEvent[]; nextPageToken: string }> {
  const client = new AuditServiceClient(server.grpcAddress, credentials.createInsecure());
  onTestFinished(() => client.close());
  const request = ListAuditEventsRequest.fromPartial({ pageSize: 1_000, ...more });
  return call(client, AuditServiceService.listAuditEvents, request);
}

const SEGMENT = { $case: "segment", value: {} } as const;

/** Methods for administrators that change something elsewhere than here, or nothing. */
const UNTRIED = [
  "AuditService/ListAuditEvents",
  // Needs two Redis servers.
  "TagService/MoveTag",
  // Needs a server that is gone; the store's suite has it.
  "NodeService/ForgetNode",
  "AccessService/ListTokens",
];

test("each change over the API has a row that says who made it, from where, and by which method", async () => {
  const forAdmins = new Set<string>();
  const authorise: Authorise = (_context, path, _request, rule) => {
    if (isForAdmins(rule)) forAdmins.add(path);
  };
  const it = await startTest({ flags: { instance: "one" }, parts: { authorise } });
  const { tags, nodes } = it;
  const { pauseTag, resumeTag, returnToPeriod } = TagServiceService;
  const tag = { name: "t", kind: SEGMENT };
  await call(tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
  const update = { tag: { name: "t", description: "new" }, updateMask: ["description"] };
  await call(tags, TagServiceService.updateTag, UpdateTagRequest.fromPartial(update));
  const advance = AdvanceTagRequest.fromPartial({ name: "t", floor: 500n });
  await call(tags, TagServiceService.advanceTag, advance);
  await call(tags, pauseTag, PauseTagRequest.fromPartial({ name: "t" }));
  await call(tags, resumeTag, ResumeTagRequest.fromPartial({ name: "t" }));
  const value = { period: PeriodUnit.DAY, timeZone: "UTC" };
  const daily = { name: "daily", kind: { $case: "sequence", value } as const };
  await call(tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag: daily }));
  await call(it.ids, IdServiceService.generateId, GenerateIdRequest.fromPartial({ tag: "daily" }));
  const back = ReturnToPeriodRequest.fromPartial({
    name: "daily",
    period: "2020-01-01",
    floor: 9n,
  });
  await call(tags, returnToPeriod, back);
  const dropped = await call(
    tags,
    TagServiceService.deleteTag,
    DeleteTagRequest.fromPartial({ name: "t" }),
  );
  expect(dropped.tag?.state).toBe(TagState.DELETED);
  const node = "one";
  await call(
    nodes,
    NodeServiceService.setNodeWeight,
    SetNodeWeightRequest.fromPartial({ node, weight: 7 }),
  );
  await call(nodes, NodeServiceService.drainNode, DrainNodeRequest.fromPartial({ node }));
  await call(nodes, NodeServiceService.undrainNode, UndrainNodeRequest.fromPartial({ node }));
  await call(nodes, NodeServiceService.stopIssuing, { validateOnly: false });
  await call(nodes, NodeServiceService.resumeIssuing, { validateOnly: false });

  const access = new AccessServiceClient(it.server.grpcAddress, credentials.createInsecure());
  onTestFinished(() => access.close());
  const { createToken, revokeToken } = AccessServiceService;
  const wish = { principal: "ops", rights: [{ role: Role.OBSERVE, tags: "*" }] };
  // While there are principals, nobody is let in without a token: the authorise of this test takes their place.
  const created = await call(access, createToken, CreateTokenRequest.fromPartial(wish));
  const tokenId = created.token?.tokenId ?? "";
  await call(access, revokeToken, RevokeTokenRequest.fromPartial({ tokenId }));

  const { events } = await list(it);
  expect(JSON.stringify(it.store.database.audit)).not.toContain(created.text);
  const methods = new Set(events.map(({ method }) => method));
  const untried = new Set(UNTRIED.map((name) => `/idmint.v1.${name}`));
  expect([...methods].toSorted()).toEqual(
    [...forAdmins].filter((path) => !untried.has(path)).toSorted(),
  );
  for (const { peer, server, principal, outcome, kind } of events) {
    expect([server, principal, outcome, kind]).toEqual(["one", "", "OK", AuditKind.CHANGE]);
    expect(peer).toContain("127.0.0.1");
  }
  const raised = events.find(({ method }) => method.endsWith("AdvanceTag"));
  expect(raised?.resource).toBe("tag/t");
  expect(JSON.parse(raised?.before ?? "")).toMatchObject({ floor: "0" });
  expect(JSON.parse(raised?.after ?? "")).toMatchObject({ floor: "500" });
  // The log is told the same, each event once.
  const told = (): string[] =>
    it.events.flatMap((event) => (event.type === "audit" ? [event.event.id] : []));
  await until(() => told().length >= events.length);
  expect(told().toSorted()).toEqual(events.map(({ eventId }) => eventId).toSorted());
});

test("every method for administrators is tried here, or said not to be", async () => {
  const paths = [
    AccessServiceService,
    AuditServiceService,
    NodeServiceService,
    TagServiceService,
  ].flatMap((service) =>
    Object.values(service as Record<string, { path: string }>).map(({ path }) => path),
  );
  for (const name of UNTRIED) {
    const path = `/idmint.v1.${name}`;
    expect(paths).toContain(path);
  }
});

const refusesSome: Authorise = (_context, path) => {
  if (path.endsWith("/GenerateId")) throw new IdmintError("PERMISSION_DENIED", "not for you");
  if (path.endsWith("/PauseTag")) throw new IdmintError("UNAUTHENTICATED", "who are you");
};

test("refusals of a right are counted, have few rows, and are listed by their conditions", async () => {
  const it = await startTest({ parts: { authorise: refusesSome } });
  const refused = (tag: string) =>
    refusalOf(call(it.ids, IdServiceService.generateId, GenerateIdRequest.fromPartial({ tag })));
  expect((await refused("secret")).code).toBe("PERMISSION_DENIED");
  const pause = call(
    it.tags,
    TagServiceService.pauseTag,
    PauseTagRequest.fromPartial({ name: "p" }),
  );
  expect((await refusalOf(pause)).code).toBe("UNAUTHENTICATED");
  for (let at = 0; at < 100; at++) await refused(`t${at}`);
  await until(() => it.store.database.audit.length >= 10);
  const { events } = await list(it, { kind: AuditKind.REFUSAL });
  expect(events).toHaveLength(10);
  const [oldest] = events.toReversed();
  expect(oldest).toMatchObject({
    method: "/idmint.v1.IdService/GenerateId",
    resource: "tag/secret",
    outcome: "PERMISSION_DENIED",
    before: "",
    after: "",
    omittedCount: 0n,
  });
  const one = await list(it, { resource: "tag/p", kind: AuditKind.REFUSAL });
  expect(one.events.map(({ outcome }) => outcome)).toEqual(["UNAUTHENTICATED"]);
  const unknown = await list(it, { outcome: "UNAUTHENTICATED" });
  expect(unknown.events.map(({ resource }) => resource)).toEqual(["tag/p"]);
  expect((await list(it, { outcome: "OK" })).events).toEqual([]);
  // Stopping tells what was left out, however short the minute was.
  await it.server.close();
  const rows = it.store.database.audit;
  expect(rows.reduce((sum, { omitted }) => sum + Math.max(1, omitted), 0)).toBe(102);
  expect(rows).toHaveLength(11);
});

test("pages follow each other by the token, which belongs to its conditions", async () => {
  const it = await startTest();
  for (const name of ["a", "b", "c", "d", "e"]) {
    const tag = { name, kind: SEGMENT };
    await call(it.tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
  }
  const seen: string[] = [];
  let pageToken = "";
  do {
    const page = await list(it, { pageSize: 2, pageToken });
    seen.push(...page.events.map(({ resource }) => resource));
    pageToken = page.nextPageToken;
    if (seen.length === 2) {
      const other = await refusalOf(list(it, { pageSize: 2, pageToken, principal: "x" }));
      expect(other.fields).toMatchObject([{ field: "page_token", reason: "INVALID_PAGE_TOKEN" }]);
      const ended = await refusalOf(list(it, { pageSize: 2, pageToken, outcome: "OK" }));
      expect(ended.fields).toMatchObject([{ field: "page_token", reason: "INVALID_PAGE_TOKEN" }]);
    }
  } while (pageToken !== "");
  expect(seen.toSorted()).toEqual(["tag/a", "tag/b", "tag/c", "tag/d", "tag/e"]);
  const past = await list(it, { endTime: new Date(1_000) });
  expect(past).toEqual({ events: [], nextPageToken: "" });
  const times = { startTime: new Date(2_000), endTime: new Date(1_000) };
  expect((await refusalOf(list(it, times))).fields).toMatchObject([{ field: "end_time" }]);
  expect((await refusalOf(list(it, { kind: 9 as never }))).fields).toMatchObject([
    { field: "kind" },
  ]);
});

test("who shows a wrong token is refused as nobody, and who has too few rights as themselves", async () => {
  const it = await startTest();
  const access = new AccessServiceClient(it.server.grpcAddress, credentials.createInsecure());
  onTestFinished(() => access.close());
  const wish = { principal: "reader", rights: [{ role: Role.OBSERVE, tags: "*" }] };
  const create = CreateTokenRequest.fromPartial(wish);
  const { text } = await call(access, AccessServiceService.createToken, create);
  const pause = (token: string) =>
    new Promise<string>((resolve) => {
      const metadata = new Metadata();
      metadata.set("authorization", `Bearer ${token}`);
      it.tags.pauseTag(PauseTagRequest.fromPartial({ name: "t" }), metadata, (error) =>
        resolve(status[error?.code ?? 0] ?? ""),
      );
    });
  expect(await pause(text)).toBe("PERMISSION_DENIED");
  expect(await pause(`${text.slice(0, -4)}AAAA`)).toBe("UNAUTHENTICATED");
  await it.server.close();
  const refused = it.store.database.audit.filter(({ kind }) => kind === "refusal");
  expect(refused.map(({ principal, proof, outcome }) => [principal, proof, outcome])).toEqual([
    ["reader", "token", "PERMISSION_DENIED"],
    ["", "", "UNAUTHENTICATED"],
  ]);
  expect(JSON.stringify(refused)).not.toContain(text.slice(-20));
});
