// What callers may do who show nothing, and the clients of Tinyid, who always send a token of Tinyid's.
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { credentials } from "@grpc/grpc-js";
import { type Token, tokenText } from "@idmint/core/server";
import { AccessServiceService, IdServiceService, NodeServiceService, Role } from "@idmint/proto";
import { AccessServiceClient } from "@idmint/proto/grpc-js";
import { MemoryDatabase, MemoryStore } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { makeStepTag, startDropIn } from "../../http/drop-in-support.ts";
import { call, createTag, generateId, refusalOf, startTest, until } from "../../support.ts";

const SECRET = "s".repeat(43);
const ID = "00000000000000aa";
const TEXT = tokenText({ id: ID, secret: SECRET });
const OPS: Token = {
  id: ID,
  principal: "ops",
  rights: [{ role: "admin", tags: "*" }],
  hash: createHash("sha256").update(SECRET).digest("hex"),
  createdAtMs: 0,
  expiresAtMs: Date.now() + 86_400_000,
};

/** A store in which two tags are, made while it was open, and a handle on it. */
async function storeWith(...names: readonly string[]): Promise<() => MemoryStore> {
  const database = new MemoryDatabase();
  const handle = (): MemoryStore => new MemoryStore({ database });
  const it = await startTest({ store: handle() });
  for (const name of names) {
    await makeStepTag(it, name, 10);
  }
  await it.server.close();
  return handle;
}

test("callers who show nothing may take ids of the tags they are given, and nothing else, also when there are principals", async () => {
  const handle = await storeWith("orders", "bank");
  const store = handle();
  const flags = { "access-anonymous": "issue", "access-anonymous-tags": "orders,orders.*" };
  const it = await startTest({ store, flags });
  const access = new AccessServiceClient(it.server.grpcAddress, credentials.createInsecure());
  onTestFinished(() => access.close());
  const byOps = () => call(it.nodes, NodeServiceService.getNodeStatus, {}, 5_000, TEXT);
  for (const hasPrincipal of [false, true]) {
    if (hasPrincipal) await store.addToken(OPS);
    if (hasPrincipal)
      await until(() =>
        byOps().then(
          () => true,
          () => false,
        ),
      );
    expect((await generateId(it, "orders")).id).toBeGreaterThan(0n);
    const refused = {
      code: "UNAUTHENTICATED",
      message: expect.stringMatching(/the role issue for "bank" \(access\.anonymous\)/u) as string,
      metadata: { role: "issue" },
    };
    expect(await refusalOf(generateId(it, "bank"))).toMatchObject(refused);
    expect(await refusalOf(createTag(it, "orders.new"))).toMatchObject({
      code: "UNAUTHENTICATED",
      metadata: { role: "admin" },
    });
    // As an SDK does, which learns the servers.
    await call(it.nodes, NodeServiceService.listNodes, { pageSize: 0, pageToken: "" });
    const { principal, rights } = await call(access, AccessServiceService.getAccess, {});
    expect({ principal, rights }).toEqual({
      principal: "",
      rights: ["orders", "orders.*"].map((tags) => ({ role: Role.ISSUE, tags })),
    });
    const http = await fetch(`http://${it.server.httpAddress}/idmint.v1.IdService/GenerateId`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ tag: "bank" }),
    });
    expect(http.status).toBe(401);
  }
  const wrong = call(it.ids, IdServiceService.generateId, { tag: "orders", name: "" }, 5_000, "x");
  expect((await refusalOf(wrong)).code).toBe("UNAUTHENTICATED");
});

test("nobody is anonymous where nobody may be, and everybody where all may do all", async () => {
  const handle = await storeWith("orders");
  const none = await startTest({ store: handle(), flags: { "access-anonymous": "none" } });
  expect((await refusalOf(generateId(none, "orders"))).code).toBe("UNAUTHENTICATED");
  const store = handle();
  await store.addToken(OPS);
  const all = await startTest({ store, flags: { "access-anonymous": "all" } });
  await createTag(all, "new");
  expect((await generateId(all, "new")).id).toBe(1n);
});

test("a server that others can reach starts where everybody may take ids", async () => {
  const flags = { "grpc-address": "0.0.0.0:0", insecure: "true", "access-anonymous": "issue" };
  const it = await startTest({ store: (await storeWith("orders"))(), flags });
  await generateId(it, "orders");
});

function tokensFile(text: string): { file: string; write: (text: string) => void } {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-tinyid-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "tokens");
  const write = (next: string): void => writeFileSync(file, next);
  write(text);
  return { file, write };
}

const nextId = (tag: string, token: string): string =>
  `/tinyid/id/nextSegmentIdSimple?bizType=${tag}&token=${token}`;

test("clients of Tinyid go on when the first token is made, where everybody may take ids", async () => {
  const store = (await storeWith("order"))();
  const it = await startDropIn({ store, flags: { "access-anonymous": "issue" } });
  const asked = async (token: string): Promise<unknown> =>
    (await it.ask(nextId("order", token))).reason;
  expect(await asked("any")).toBeUndefined();
  await store.addToken(OPS);
  await until(async () => (await asked(TEXT)) === "PERMISSION_DENIED");
  expect(await asked("any")).toBeUndefined();
  // A token of ours that is wrong lets in nobody.
  expect(await asked(`${TEXT.slice(0, -1)}x`)).toBe("UNAUTHENTICATED");
  const header = { authorization: "Bearer any" };
  expect((await it.ask(nextId("order", ""), "GET", header)).reason).toBe("UNAUTHENTICATED");
});

test("clients of Tinyid are known by Tinyid's tokens, for its tags, on its paths", async () => {
  const store = (await storeWith("order", "bank"))();
  const { file, write } = tokensFile("0f673adf,order\nother,bank\n");
  const it = await startDropIn({ store, flags: { "tinyid-tokens": file } });
  const asked = async (tag: string, token: string, headers = {}): Promise<unknown> =>
    (await it.ask(nextId(tag, token), "POST", headers)).reason;
  for (const hasPrincipal of [false, true]) {
    if (hasPrincipal) await store.addToken(OPS);
    if (hasPrincipal) await until(async () => (await asked("bank", TEXT)) === "PERMISSION_DENIED");
    expect(await asked("order", "0f673adf")).toBeUndefined();
    expect(await asked("bank", "0f673adf")).toBe("PERMISSION_DENIED");
    expect(await asked("order", "unknown")).toBe("UNAUTHENTICATED");
    expect(await asked("order", "")).toBe("UNAUTHENTICATED");
    expect(await asked("order", "0f673adf", { authorization: "Bearer x" })).toBe("UNAUTHENTICATED");
    const bearer = call(
      it.ids,
      IdServiceService.generateId,
      { tag: "order", name: "" },
      5_000,
      "0f673adf",
    );
    expect((await refusalOf(bearer)).code).toBe("UNAUTHENTICATED");
    expect((await refusalOf(generateId(it, "order"))).code).toBe("UNAUTHENTICATED");
  }
  write("0f673adf,bank\n");
  await until(async () => (await asked("bank", "0f673adf")) === undefined);
  expect(await asked("order", "0f673adf")).toBe("PERMISSION_DENIED");
});
