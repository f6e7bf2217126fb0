// Who may: over gRPC and over HTTP, for every method of the API.
import { createHash } from "node:crypto";
import { type Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { type Right, type Role, ROLES, type Token, tokenText } from "@idmint/core/server";
import * as proto from "@idmint/proto";
import * as clients from "@idmint/proto/grpc-js";
import { MemoryDatabase, MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, type MockInstance, onTestFinished, test, vi } from "vitest";
import { TokenService } from "../../../src/service/access/tokens.ts";
import { DecodeService } from "../../../src/service/issue/decode.ts";
import { IdService } from "../../../src/service/issue/ids.ts";
import { NodeService } from "../../../src/service/node.ts";
import { IssuingService } from "../../../src/service/tags/issuing.ts";
import { TagService } from "../../../src/service/tags/service.ts";
import { TrafficService } from "../../../src/service/traffic.ts";
import { WorkerService } from "../../../src/service/worker-ids/service.ts";
import { EXPECTED } from "../../api/expected-needs.ts";
import {
  call,
  createTag,
  generateId,
  type Refusal,
  refusalOf,
  startTest,
  until,
} from "../../support.ts";
import type { RunningServer } from "../../../src/main/running.ts";

const DAY_MS = 86_400_000;
let made = 0;

interface Made {
  readonly token: Token;
  readonly text: string;
}

/** A token and its text. */
function tokenOf(principal: string, rights: readonly Right[], more: Partial<Token> = {}): Made {
  const id = String(++made).padStart(16, "0");
  const secret = `canary-${principal}-`.padEnd(43, String(made)).slice(0, 43);
  const hash = createHash("sha256").update(secret).digest("hex");
  const times = { createdAtMs: Date.now(), expiresAtMs: Date.now() + DAY_MS };
  const token = { id, principal, rights, hash, ...times, ...more };
  return { token, text: tokenText({ id, secret }) };
}

const CLIENTS = {
  Id: clients.IdServiceClient,
  Tag: clients.TagServiceClient,
  Worker: clients.WorkerServiceClient,
  Node: clients.NodeServiceClient,
  Access: clients.AccessServiceClient,
  Audit: clients.AuditServiceClient,
};
const SERVICES = {
  Id: proto.IdServiceService,
  Tag: proto.TagServiceService,
  Worker: proto.WorkerServiceService,
  Node: proto.NodeServiceService,
  Access: proto.AccessServiceService,
  Audit: proto.AuditServiceService,
};

/** Every method of the API that is one call, by both doors, and a client for it. */
function methodsAt({
  grpcAddress: address,
  httpAddress,
}: RunningServer): readonly (Called & { door: "grpc" | "http"; httpAddress: string })[] {
  const methods = methodsOf(address);
  return (["grpc", "http"] as const).flatMap((door) =>
    methods.map((each) => ({ ...each, door, httpAddress })),
  );
}

interface Called {
  readonly path: string;
  readonly client: Client;
  readonly method: never;
}

function methodsOf(address: string): readonly Called[] {
  return (["Id", "Tag", "Worker", "Node", "Access", "Audit"] as const).flatMap((name) => {
    const plain = credentials.createInsecure();
    const client = new CLIENTS[name](address, plain, { "grpc.use_local_subchannel_pool": 1 });
    onTestFinished(() => client.close());
    return Object.values(SERVICES[name] as Record<string, AnyMethod>)
      .filter(({ requestStream }) => !requestStream)
      .map((method) => ({ path: method.path, client, method: method as never }));
  });
}

interface AnyMethod {
  readonly path: string;
  readonly requestStream: boolean;
}

/** A request that names the tag by whatever field it has for that, and that changes nothing where it can say so. */
function requestAbout(path: string, tag: string): unknown {
  const name = path.split("/").at(-1) ?? "";
  const types = proto as unknown as Record<string, { fromPartial(value: object): unknown }>;
  const isWhole = ["CreateTag", "UpdateTag"].includes(name);
  return types[`${name}Request`]!.fromPartial({
    tag: isWhole ? { name: tag } : tag,
    name: tag,
    prefix: tag,
    validateOnly: true,
  });
}

/** What a call was answered: OK, or how it was refused, with the bytes of the details. */
function outcomeOf(
  called: ReturnType<typeof methodsAt>[number],
  tag: string,
  header: string | undefined,
): Promise<{ code: string; bytes: string }> {
  return called.door === "grpc" ? byGrpc(called, tag, header) : byHttp(called, tag, header);
}

async function byHttp(
  { path, httpAddress }: ReturnType<typeof methodsAt>[number],
  tag: string,
  header: string | undefined,
): Promise<{ code: string; bytes: string }> {
  const types = proto as unknown as Record<string, { toJSON(value: unknown): unknown }>;
  const type = types[`${path.split("/").at(-1) ?? ""}Request`]!;
  const response = await fetch(`http://${httpAddress}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(header === undefined ? {} : { authorization: header }),
    },
    body: JSON.stringify(type.toJSON(requestAbout(path, tag))),
  });
  if (response.status === 200) return { code: "OK", bytes: "" };
  const { code, message, details } = (await response.json()) as Record<string, unknown>;
  return {
    code: String(code).toUpperCase(),
    bytes: `${String(message)} ${JSON.stringify(details)}`,
  };
}

async function byGrpc(
  { client, method, path }: Called,
  tag: string,
  header: string | undefined,
): Promise<{ code: string; bytes: string }> {
  const metadata = new Metadata();
  if (header !== undefined) metadata.set("authorization", header);
  const serialize = (method as { requestSerialize: (request: unknown) => Buffer }).requestSerialize;
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      path,
      serialize,
      (bytes: Buffer) => bytes,
      requestAbout(path, tag),
      metadata,
      { deadline: Date.now() + 10_000 },
      (error: ServiceError | null) => {
        if (error === null) return resolve({ code: "OK", bytes: "" });
        const details = error.metadata.get("grpc-status-details-bin").map(String).join();
        resolve({ code: status[error.code] ?? "?", bytes: `${error.details} ${details}` });
      },
    );
  });
}

/** All methods of what stands behind the table. */
function spies(): readonly MockInstance[] {
  const classes = [IdService, TagService, WorkerService, NodeService, TokenService];
  const others = [IssuingService, TrafficService, DecodeService];
  return [...classes, ...others].flatMap(({ prototype }) =>
    Object.getOwnPropertyNames(prototype)
      .filter((name) => name !== "constructor")
      .filter((name) => Object.getOwnPropertyDescriptor(prototype, name)?.get === undefined)
      // What a server does by itself.
      .filter((name) => !["ready", "health", "status"].includes(name))
      .map((name) => vi.spyOn(prototype as unknown as Record<string, () => void>, name)),
  );
}

/** Without the bytes of the details, whose text is beside them. */
const masked = (text: string): string => text.replaceAll(/"value":"[^"]*"/g, "");

const isRefused = (code: string): boolean => /^(?:UNAUTHENTICATED|PERMISSION_DENIED)$/.test(code);

test("every method answers every caller as the table of rights says", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  for (const name of ["acme.there", "zeta.there"]) await createTag(it, name);
  const all = (role: Role): Made => tokenOf(role, [{ role, tags: "acme.*" }]);
  const everywhere = (role: Role): Made => tokenOf(`all-${role}`, [{ role, tags: "*" }]);
  const mine = Object.fromEntries(ROLES.map((role) => [role, all(role)])) as Record<Role, Made>;
  const whole = Object.fromEntries(ROLES.map((role) => [role, everywhere(role)])) as typeof mine;
  const strangers = ROLES.map((role) => ({ role, tags: "zeta.*" }));
  const other = tokenOf("zeta", strangers);
  const revoked = tokenOf("gone", [{ role: "admin", tags: "*" }]);
  const expired = tokenOf("late", revoked.token.rights, { expiresAtMs: Date.now() - 1 });
  const good = [...Object.values(mine), ...Object.values(whole), other, revoked, expired];
  for (const { token } of good) await store.addToken(token);
  const methods = methodsAt(it.server);
  const first = methods.find(({ path }) => path.endsWith("/ListNodes"))!;
  await until(async () => (await outcomeOf(first, "", `Bearer ${revoked.text}`)).code === "OK");
  await store.removeToken(revoked.token.id);
  await until(async () => (await outcomeOf(first, "", `Bearer ${revoked.text}`)).code !== "OK");
  const nobody: Readonly<Record<string, string | undefined>> = {
    "no token": undefined,
    "an empty header": "",
    "another scheme": `Basic ${whole.admin.text}`,
    "no token of ours": "Bearer secret",
    "an unknown token": `Bearer ${tokenOf("x", []).text}`,
    "a wrong secret": `Bearer ${whole.admin.text.slice(0, -1)}${whole.admin.text.endsWith("x") ? "y" : "x"}`,
    "an expired token": `Bearer ${expired.text}`,
    "a revoked token": `Bearer ${revoked.text}`,
  };
  const seen = spies();
  /** Calls of the store, without those that a server makes by itself. */
  const asked = (): number =>
    (
      ["changes", "readTokens", "listWorkers", "recordAudit", "listAudit", "trimAudit"] as const
    ).reduce((sum, each) => sum - store.count(each), store.count());
  let checked = 0;
  for (const each of methods) {
    const name = each.path.replace("/idmint.v1.", "");
    const { may, by } = EXPECTED[name]!;
    const before = asked();
    for (const spy of seen) spy.mockClear();
    const refusals: (readonly [string, string, string | undefined])[] = [];
    if (may !== "everybody") {
      for (const [who, header] of Object.entries(nobody)) {
        refusals.push([who, "UNAUTHENTICATED", header]);
      }
    }
    if (Array.isArray(may)) {
      refusals.push(["another tenant's", "PERMISSION_DENIED", `Bearer ${other.text}`]);
      for (const role of ROLES) {
        const isMine = may.includes(role);
        if (!isMine)
          refusals.push([`all ${role}`, "PERMISSION_DENIED", `Bearer ${whole[role].text}`]);
        if (!isMine || by === undefined)
          refusals.push([role, "PERMISSION_DENIED", `Bearer ${mine[role].text}`]);
      }
    }
    const answered = refusals.map(async ([who, code, header]) => {
      const there = await outcomeOf(each, "acme.there", header);
      const ghost = await outcomeOf(each, "acme.ghost", header);
      expect(there.code, `${name} by ${each.door} with ${who}`).toBe(code);
      // Of HTTP, the details are in base64 too, and of other lengths.
      const same = each.door === "http" ? { ...ghost, bytes: masked(ghost.bytes) } : ghost;
      const its = each.door === "http" ? { ...there, bytes: masked(there.bytes) } : there;
      expect({ ...same, bytes: same.bytes.replaceAll("ghost", "there") }).toEqual(its);
      checked += 2;
    });
    await Promise.all(answered);
    // Nothing was asked for, in the store or in memory.
    expect(asked() - before, name).toBe(0);
    for (const spy of seen) expect(spy, `${name}: ${spy.getMockName()}`).not.toHaveBeenCalled();
  }
  for (const each of methods) {
    const name = each.path.replace("/idmint.v1.", "");
    const { may, by } = EXPECTED[name]!;
    const allowed = Array.isArray(may)
      ? (may as readonly Role[]).map((role) => (by === undefined ? whole[role] : mine[role]))
      : [other];
    const taken = allowed.map(async ({ text, token }) => {
      const { code, bytes } = await outcomeOf(each, "acme.there", `Bearer ${text}`);
      expect(isRefused(code), `${name} by ${each.door}, ${token.principal}: ${code} ${bytes}`).toBe(
        false,
      );
      checked++;
    });
    await Promise.all(taken);
  }
  expect(checked).toBeGreaterThan(methods.length * 15);
  vi.restoreAllMocks();
  // No secret is in what was logged or told.
  const told = JSON.stringify(it.events, (_, value: unknown) =>
    typeof value === "bigint" ? String(value) : value instanceof Error ? `${value.stack}` : value,
  );
  expect(told).not.toContain("canary-");
});

/** Fulfils when a server knows that there are principals. */
async function closed(it: Awaited<ReturnType<typeof startTest>>): Promise<void> {
  await until(() =>
    generateId(it, "orders").then(
      () => false,
      (error: unknown) => (error as Refusal).code === "UNAUTHENTICATED",
    ),
  );
}

test("GetAccess tells callers who they are and what they may, and strangers nothing", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  const access = new clients.AccessServiceClient(
    it.server.grpcAddress,
    credentials.createInsecure(),
  );
  onTestFinished(() => access.close());
  const { getAccess } = proto.AccessServiceService;
  const told = async (text?: string): Promise<unknown> => call(access, getAccess, {}, 5_000, text);
  // As long as there are no principals.
  expect(await told()).toEqual({
    principal: "",
    rights: [
      { role: proto.Role.ISSUE, tags: "*" },
      { role: proto.Role.ADMIN, tags: "*" },
    ],
  });
  const rights = [
    { role: "issue", tags: "orders" },
    { role: "observe", tags: "invoices.*" },
  ] as const;
  const known = tokenOf("billing", rights);
  await store.addToken(known.token);
  await closed(it);
  expect(await told(known.text)).toEqual({
    principal: "billing",
    rights: [
      { role: proto.Role.ISSUE, tags: "orders" },
      { role: proto.Role.OBSERVE, tags: "invoices.*" },
    ],
  });
  for (const text of [undefined, tokenOf("stranger", rights).text]) {
    expect((await refusalOf(told(text))).code).toBe("UNAUTHENTICATED");
  }
});

/** One call for an id with a token. */
async function idBy(
  it: Awaited<ReturnType<typeof startTest>>,
  text: string,
  tag = "orders",
): Promise<unknown> {
  return call(it.ids, proto.IdServiceService.generateId, { tag, name: "" }, 5_000, text);
}

test("a quota is of the principal and not of the address, and each may have its own", async () => {
  const store = new MemoryStore();
  const flags = { "quota-caller-ids": "10,large=1000", "quota-burst": "1s" };
  const it = await startTest({ store, flags });
  await createTag(it, "orders");
  const [small, large] = ["small", "large"].map((name) =>
    tokenOf(name, [{ role: "issue", tags: "*" }]),
  );
  for (const each of [small, large]) await store.addToken(each!.token);
  await closed(it);
  const take = (text: string): Promise<unknown> => {
    const request = { tag: "orders", count: 100, asList: false };
    return call(it.ids, proto.IdServiceService.generateIds, request, 5_000, text);
  };
  // A debt of 90 ids is of this one alone.
  await take(small!.text);
  const metadata = { quota: "caller_ids", limit: "10", caller: "small" };
  expect(await refusalOf(take(small!.text))).toMatchObject({ reason: "QUOTA_EXCEEDED", metadata });
  for (let i = 0; i < 5; i++) await take(large!.text);
  expect(await refusalOf(take(small!.text))).toMatchObject({ reason: "QUOTA_EXCEEDED" });
});

test("a stream ends when its token is revoked, and nobody gets one without a token", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "orders");
  const one = tokenOf("orders", [{ role: "issue", tags: "orders" }]);
  const other = tokenOf("ops", [{ role: "issue", tags: "*" }]);
  for (const { token } of [one, other]) await store.addToken(token);
  await closed(it);
  const open = (text?: string) => {
    const metadata = new Metadata();
    if (text !== undefined) metadata.set("authorization", `Bearer ${text}`);
    const stream = it.ids.streamIds(metadata);
    const answers: proto.StreamIdsResponse[] = [];
    const ended = new Promise<string>((resolve) => {
      stream.on("data", (answer: proto.StreamIdsResponse) => answers.push(answer));
      stream.on("error", (error: ServiceError) => resolve(status[error.code] ?? "?"));
      stream.on("end", () => resolve("OK"));
    });
    return { stream, answers, ended };
  };
  // It says nothing, and is told at once.
  expect(await open().ended).toBe("UNAUTHENTICATED");
  expect(await open("idm_wrong").ended).toBe("UNAUTHENTICATED");
  const [mine, its] = [open(one.text), open(other.text)];
  mine.stream.write({ call: 1, tag: "orders", count: 1, name: "" });
  mine.stream.write({ call: 2, tag: "invoices", count: 1, name: "" });
  its.stream.write({ call: 3, tag: "orders", count: 1, name: "" });
  await until(() => mine.answers.length === 2 && its.answers.length === 1);
  const byCall = new Map(mine.answers.map((answer) => [answer.call, answer.result?.$case]));
  expect(byCall).toEqual(
    new Map([
      [1, "one"],
      [2, "error"],
    ]),
  );
  const revokedAt = performance.now();
  await store.removeToken(one.token.id);
  const ended = await Promise.race([mine.ended, new Promise((end) => setTimeout(end, 5_000))]);
  expect(ended).toBe("UNAUTHENTICATED");
  // The promise is two seconds; the machine may be slow.
  expect(performance.now() - revokedAt).toBeLessThan(5_000);
  its.stream.write({ call: 4, tag: "orders", count: 1, name: "" });
  await until(() => its.answers.length === 2);
  its.stream.end();
  expect(await its.ended).toBe("OK");
});

test("tokens are changed one for the other under load without a failed call", async () => {
  const isLong = process.env["IDMINT_LONG"] === "1";
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "orders");
  const root = tokenOf("ops", [{ role: "admin", tags: "*" }]);
  await store.addToken(root.token);
  const access = new clients.AccessServiceClient(
    it.server.grpcAddress,
    credentials.createInsecure(),
  );
  onTestFinished(() => access.close());
  const { createToken, revokeToken } = proto.AccessServiceService;
  await closed(it);
  const newOne = async (): Promise<proto.CreateTokenResponse> => {
    const request = proto.CreateTokenRequest.fromPartial({
      principal: "orders",
      rights: [{ role: proto.Role.ISSUE, tags: "orders" }],
    });
    return call(access, createToken, request, 5_000, root.text);
  };
  let current = await newOne();
  const over = { isSo: false };
  let answered = 0;
  const failed: unknown[] = [];
  const perSecond = isLong ? 1_000 : 200;
  const inFlight: Promise<void>[] = [];
  const load = (async () => {
    const start = performance.now();
    while (!over.isSo) {
      while (inFlight.length < ((performance.now() - start) / 1_000) * perSecond) {
        const count = (): void => void answered++;
        inFlight.push(
          idBy(it, current.text).then(count, (error: unknown) => void failed.push(error)),
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await Promise.all(inFlight);
  })();
  for (let turn = 0; turn < (isLong ? 20 : 3); turn++) {
    const next = await newOne();
    const old = current;
    current = next;
    await new Promise((resolve) => setTimeout(resolve, 100));
    // Whoever changes a token lets calls with the old one end first, however long the machine takes for them.
    await Promise.all(inFlight);
    const request = { tokenId: old.token?.tokenId ?? "", validateOnly: false };
    await call(access, revokeToken, request, 5_000, root.text);
    expect((await refusalOf(idBy(it, old.text))).code).toBe("UNAUTHENTICATED");
  }
  over.isSo = true;
  await load;
  expect(failed).toEqual([]);
  expect(answered).toBeGreaterThan(50);
});

test("a token that one server makes or revokes is known to the others soon, and to that one at once", async () => {
  const database = new MemoryDatabase();
  const [one, two] = [
    await startTest({ store: new MemoryStore({ database }) }),
    await startTest({ store: new MemoryStore({ database }) }),
  ];
  await createTag(one, "orders");
  const root = tokenOf("ops", [{ role: "admin", tags: "*" }]);
  await one.store.addToken(root.token);
  await Promise.all([closed(one), closed(two)]);
  const access = new clients.AccessServiceClient(
    one.server.grpcAddress,
    credentials.createInsecure(),
  );
  onTestFinished(() => access.close());
  const { createToken, listTokens, revokeToken } = proto.AccessServiceService;
  const wish = proto.CreateTokenRequest.fromPartial({
    principal: "orders",
    rights: [{ role: proto.Role.ISSUE, tags: "orders" }],
  });
  const dry = await call(access, createToken, { ...wish, validateOnly: true }, 5_000, root.text);
  expect(dry).toMatchObject({ text: "", token: { principal: "orders", tokenId: "" } });
  const { text, token, effectiveTime } = await call(access, createToken, wish, 5_000, root.text);
  expect(token?.expireTime?.getTime()).toBeGreaterThan(Date.now() + 89 * DAY_MS);
  await idBy(one, text);
  await until(() =>
    idBy(two, text).then(
      () => true,
      () => false,
    ),
  );
  // The machine may be slow, but not the whole of another promise.
  expect(Date.now()).toBeLessThan((effectiveTime?.getTime() ?? 0) + 2_000);
  const page = await call(access, listTokens, { pageSize: 1, pageToken: "" }, 5_000, root.text);
  expect(page.tokens).toHaveLength(1);
  const rest = { pageSize: 0, pageToken: page.nextPageToken };
  const { tokens } = await call(access, listTokens, rest, 5_000, root.text);
  const all = [...page.tokens, ...tokens].map(({ principal }) => principal);
  expect(all.toSorted()).toEqual(["ops", "orders"]);
  const gone = { tokenId: token?.tokenId ?? "", validateOnly: false };
  const checked = { ...gone, validateOnly: true };
  await call(access, revokeToken, checked, 5_000, root.text);
  await idBy(one, text);
  const revoked = await call(access, revokeToken, gone, 5_000, root.text);
  expect((await refusalOf(idBy(one, text))).code).toBe("UNAUTHENTICATED");
  await until(() =>
    idBy(two, text).then(
      () => false,
      () => true,
    ),
  );
  expect(Date.now()).toBeLessThan((revoked.effectiveTime?.getTime() ?? 0) + 2_000);
  for (const validateOnly of [false, true]) {
    const again = call(access, revokeToken, { ...gone, validateOnly }, 5_000, root.text);
    expect(await refusalOf(again)).toMatchObject({ code: "NOT_FOUND", reason: "TOKEN_NOT_FOUND" });
  }
});

test("what is wrong with a wish for a token is told, field by field", async () => {
  const it = await startTest();
  const access = new clients.AccessServiceClient(
    it.server.grpcAddress,
    credentials.createInsecure(),
  );
  onTestFinished(() => access.close());
  const { createToken, revokeToken } = proto.AccessServiceService;
  const fieldsOf = async (wish: object): Promise<readonly string[]> => {
    const request = proto.CreateTokenRequest.fromPartial(wish);
    return (await refusalOf(call(access, createToken, request))).fields.map(({ field }) => field);
  };
  const rights = [{ role: proto.Role.ISSUE, tags: "orders" }];
  expect(await fieldsOf({ principal: "two words", rights })).toEqual(["principal"]);
  expect(await fieldsOf({ principal: "", rights, lifetime: { seconds: 59n } })).toEqual([
    "principal",
    "lifetime",
  ]);
  expect(await fieldsOf({ principal: "a", rights: [] })).toEqual(["rights"]);
  const wrong = [{ role: 9, tags: "*" }, { tags: "a*b" }];
  expect(await fieldsOf({ principal: "a", rights: wrong })).toEqual([
    "rights[0].role",
    "rights[1].role",
    "rights[1].tags",
  ]);
  const bad = call(access, revokeToken, { tokenId: "ops", validateOnly: false });
  expect((await refusalOf(bad)).fields).toMatchObject([{ field: "token_id" }]);
});

test("an unknown token never reaches the store, and one that is known costs no look at it either", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "orders");
  const good = tokenOf("orders", [{ role: "issue", tags: "orders" }]);
  await store.addToken(good.token);
  await closed(it);
  const looks = (): number => store.count() - store.count("changes");
  let least = Infinity;
  // A look that comes by itself may fall into one round, not into all of them.
  for (let round = 0; round < 5; round++) {
    const before = looks();
    const calls = Array.from({ length: 50 }, (_, at) =>
      at % 2 === 0 ? idBy(it, good.text) : refusalOf(idBy(it, tokenOf("x", []).text)),
    );
    await Promise.all(calls);
    least = Math.min(least, looks() - before);
  }
  expect(least).toBe(0);
});

test("a server that is cut off believes its list for max_offline, and then nobody's token", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store, flags: { "node-max-offline": "2s" } });
  await createTag(it, "orders");
  const good = tokenOf("orders", [
    { role: "issue", tags: "orders" },
    { role: "admin", tags: "*" },
  ]);
  await store.addToken(good.token);
  await closed(it);
  store.faults = { before: storeIsDown };
  const status = (): Promise<unknown> =>
    call(it.nodes, proto.NodeServiceService.getNodeStatus, {}, 5_000, good.text);
  await status();
  await until(() =>
    status().then(
      () => false,
      (error: unknown) => (error as Error).message.includes("know its callers"),
    ),
  );
  expect(await refusalOf(status())).toMatchObject({
    code: "UNAVAILABLE",
    reason: "STORE_UNAVAILABLE",
  });
  expect((await refusalOf(generateId(it, "orders"))).code).toBe("UNAUTHENTICATED");
  store.faults = {};
  await until(() =>
    status().then(
      () => true,
      () => false,
    ),
  );
});

test("a server that others can reach does not start before it knows somebody, unless it is told to", async () => {
  const flags = { "grpc-address": "0.0.0.0:0", insecure: "true" };
  const database = new MemoryDatabase();
  const handle = (): MemoryStore => new MemoryStore({ database });
  const store = handle();
  await expect(startTest({ store: handle(), flags })).rejects.toMatchObject({
    reason: "INVALID_ARGUMENT",
    message: expect.stringMatching(/no principal is configured.*--access-anonymous/u) as string,
  });
  const open = await startTest({ store, flags: { ...flags, "access-anonymous": "all" } });
  await createTag(open, "orders");
  const ops = tokenOf("ops", [{ role: "admin", tags: "*" }]);
  await store.addToken(ops.token);
  const shut = await startTest({ store: handle(), flags });
  expect((await refusalOf(generateId(shut, "orders"))).code).toBe("UNAUTHENTICATED");
  // Whoever lets in everybody does so until told otherwise, but nobody is let in by a wrong token.
  await until(() =>
    refusalOf(idBy(open, "idm_x")).then(
      () => true,
      () => false,
    ),
  );
  await generateId(open, "orders");
});
