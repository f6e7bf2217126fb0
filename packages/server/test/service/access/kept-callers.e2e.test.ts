// Who may call a server that is started again while its store is down.
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Token, tokenText } from "@idmint/core/server";
import {
  AccessServiceService,
  CreateTokenRequest,
  IdServiceService,
  RevokeTokenRequest,
} from "@idmint/proto";
import { AccessServiceClient } from "@idmint/proto/grpc-js";
import { credentials } from "@grpc/grpc-js";
import { MemoryDatabase, MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, onTestFinished, test, vi } from "vitest";
import { createSnowflake, takeIds } from "../../snowflake-support.ts";
import { call, generateId, refusalOf, startTest, type TestServer, until } from "../../support.ts";

function cacheFile(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-callers-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return path.join(folder, "leases");
}

const SECRET = "s".repeat(43);
const ID = "00000000000000aa";
const TEXT = tokenText({ id: ID, secret: SECRET });
const TOKEN: Token = {
  id: ID,
  principal: "orders",
  rights: [{ role: "issue", tags: "*" }],
  hash: createHash("sha256").update(SECRET).digest("hex"),
  createdAtMs: 0,
  expiresAtMs: Date.now() + 86_400_000,
};

/** A fleet of one, whose store can be down when it starts. */
class One {
  readonly database = new MemoryDatabase();
  readonly file = cacheFile();
  readonly more: Record<string, string>;

  constructor(more: Record<string, string> = {}) {
    this.more = more;
  }

  start(faults: MemoryStore["faults"] = {}): Promise<TestServer> {
    const flags = { "snowflake-cache-file": this.file, instance: "one", ...this.more };
    return startTest({ flags, store: new MemoryStore({ database: this.database, faults }) });
  }

  /** Until when the list in the file is believed, on the machine's clock. */
  get believedUntil(): number {
    const [, body = ""] = readFileSync(this.file, "utf8").split("\n");
    const { callers } = JSON.parse(body) as { callers: { believedUntil: string } };
    return Number(callers.believedUntil);
  }

  startCutOff(): Promise<TestServer> {
    return this.start({ before: storeIsDown });
  }
}

function idBy({ ids }: TestServer, token: string): Promise<unknown> {
  return call(ids, IdServiceService.generateId, { tag: "flakes", name: "" }, 5_000, token);
}

function noTokens(name: string): void {
  if (name === "readTokens") storeIsDown();
}

async function readiness({ server }: TestServer): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`http://${server.httpAddress}/readyz`);
  return { status: answer.status, body: await answer.json() };
}

test("a loopback server without principals is open again though its store is down, restart after restart", async () => {
  const one = new One();
  const first = await one.start();
  await createSnowflake(first, "flakes");
  let last = (await takeIds(first, "flakes", 5)).at(-1) ?? 0n;
  await first.server.close();
  for (let restart = 0; restart < 2; restart++) {
    const cutOff = await one.startCutOff();
    expect(cutOff.server.node.status().reachable).toBe(false);
    const [next = 0n] = await takeIds(cutOff, "flakes", 5);
    expect(next).toBeGreaterThan(last);
    last = next;
    expect(await readiness(cutOff)).toMatchObject({ status: 200, body: { state: "DEGRADED" } });
    await cutOff.server.close();
  }
});

test("callers whose tokens are in the store are known though it is down, until the store could not have been asked for max_offline", async () => {
  const one = new One({ "node-max-offline": "5s" });
  const first = await one.start();
  await createSnowflake(first, "flakes");
  await takeIds(first, "flakes", 5);
  await first.store.addToken(TOKEN);
  await until(() => readFileSync(one.file, "utf8").includes(TOKEN.hash));
  expect(readFileSync(one.file, "utf8")).not.toContain(SECRET);
  await first.server.close();
  const before = one.believedUntil;
  let cutOff = await one.startCutOff();
  await idBy(cutOff, TEXT);
  expect((await refusalOf(generateId(cutOff, "flakes"))).code).toBe("UNAUTHENTICATED");
  expect((await refusalOf(idBy(cutOff, `${TEXT.slice(0, -1)}x`))).code).toBe("UNAUTHENTICATED");
  expect(await readiness(cutOff)).toMatchObject({ status: 200, body: { state: "DEGRADED" } });
  // The second restart makes the list last no longer.
  await cutOff.server.close();
  cutOff = await one.startCutOff();
  await until(() =>
    idBy(cutOff, TEXT).then(
      () => false,
      (error: unknown) => (error as Error).message.includes("know its callers"),
    ),
  );
  expect(await readiness(cutOff)).toMatchObject({ status: 503 });
  // While the server runs, the file is empty for a moment each time that another takes its place.
  await cutOff.server.close();
  // The clock that counts suspends is told in steps of 10 ms.
  expect(Math.abs(one.believedUntil - before)).toBeLessThanOrEqual(40);
});

test("a server that knows nobody is not ready, whatever ids it could make", async () => {
  const one = new One();
  const first = await one.start();
  await createSnowflake(first, "flakes");
  await takeIds(first, "flakes", 5);
  await first.server.close();
  rmSync(one.file);
  const third = await one.start({ before: noTokens });
  expect(await refusalOf(generateId(third, "flakes"))).toMatchObject({
    code: "UNAVAILABLE",
    message: expect.stringMatching(/know its callers/u) as string,
  });
  expect(await readiness(third)).toMatchObject({ status: 503, body: { state: "DEGRADED" } });
  expect(third.server.node.status().stateReason).toMatch(/callers/u);
  third.store.faults = {};
  await until(() => third.server.node.ready);
  await generateId(third, "flakes");
});

test("the first token is in the file before its maker is answered, so nobody is anonymous after a kill", async () => {
  const one = new One();
  const first = await one.start();
  await createSnowflake(first, "flakes");
  await takeIds(first, "flakes", 1);
  const client = new AccessServiceClient(first.server.grpcAddress, credentials.createInsecure());
  onTestFinished(() => client.close());
  const wish = CreateTokenRequest.fromPartial({
    principal: "ops",
    rights: [{ role: 3, tags: "*" }],
    lifetime: { seconds: 3_600n, nanos: 0 },
  });
  const { token } = await call(client, AccessServiceService.createToken, wish);
  expect(readFileSync(one.file, "utf8")).toContain(`"${token?.tokenId ?? "none"}"`);
});

test("a token that was revoked is not in a file that cannot be written, or the server says so", async () => {
  const one = new One();
  const first = await one.start();
  await createSnowflake(first, "flakes");
  await takeIds(first, "flakes", 1);
  await first.store.addToken(TOKEN);
  const OPS = { id: "00000000000000bb", principal: "ops" };
  const rights = [{ role: "admin", tags: "*" }] as const;
  await first.store.addToken({ ...TOKEN, ...OPS, rights });
  const ops = tokenText({ id: OPS.id, secret: SECRET });
  await until(() => readFileSync(one.file, "utf8").includes(OPS.id));
  // Whatever takes its place cannot be made.
  await until(() => {
    try {
      mkdirSync(path.join(`${one.file}.next`, "in the way"), { recursive: true });
      return true;
    } catch {
      // It is being written.
      return false;
    }
  });
  const client = new AccessServiceClient(first.server.grpcAddress, credentials.createInsecure());
  onTestFinished(() => client.close());
  const wish = RevokeTokenRequest.fromPartial({ tokenId: ID });
  await call(client, AccessServiceService.revokeToken, wish, 5_000, ops);
  expect(readFileSync(one.file, "utf8")).toBe("");

  const handle = await open(one.file);
  const files = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const truncate = vi.spyOn(files, "truncate").mockRejectedValue(new Error("EROFS"));
  onTestFinished(() => truncate.mockRestore());
  await until(() => first.server.node.status().stateReason.includes("snowflake.cache_file"));
  expect(first.server.node.status().state).toBe("DEGRADED");
  truncate.mockRestore();
  rmSync(`${one.file}.next`, { recursive: true });
  await until(() => first.server.node.status().state === "SERVING");
});
