// Of two fields `authorization` nobody knows which one is meant, so they prove nobody. On both doors of gRPC, and over HTTP.
import { createHash } from "node:crypto";
import { type Token, tokenText } from "@idmint/core/server";
import { GenerateIdRequest } from "@idmint/proto";
import { MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import { framed } from "../fast/wire.ts";
import { rawTo } from "../http/raw.ts";
import { createTag, refusalOf, generateId, startTest, type TestServer, until } from "../support.ts";

const SECRET = "s".repeat(43);
const ID = "00000000000000aa";
const GOOD = `Bearer ${tokenText({ id: ID, secret: SECRET })}`;
const TOKEN: Token = {
  id: ID,
  principal: "orders",
  rights: [{ role: "issue", tags: "*" }],
  hash: createHash("sha256").update(SECRET).digest("hex"),
  createdAtMs: 0,
  expiresAtMs: Date.now() + 86_400_000,
};

async function started(flags: Record<string, string>): Promise<TestServer> {
  const store = new MemoryStore();
  const it = await startTest({ store, flags });
  await createTag(it, "orders");
  await store.addToken(TOKEN);
  await until(() =>
    generateId(it, "orders").then(
      () => false,
      () => true,
    ),
  );
  expect((await refusalOf(generateId(it, "orders"))).code).toBe("UNAUTHENTICATED");
  return it;
}

/** A text of HPACK; lengths from 127 on go over two octets. */
function hpackText(its: string): Buffer {
  const bytes = Buffer.from(its);
  const length = bytes.length < 127 ? [bytes.length] : [127, bytes.length - 127];
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** A field of HPACK that is in no table. */
function field(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), hpackText(name), hpackText(value)]);
}

const END_STREAM = 1;
const END_HEADERS = 4;
const [DATA, HEADERS, RST_STREAM, SETTINGS] = [0, 1, 3, 4];

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Whether the frames that came end the first stream. */
function isOver(bytes: Buffer): boolean {
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    const [type, flags, stream] = [bytes[at + 3], bytes[at + 4] ?? 0, bytes.readUInt32BE(at + 5)];
    if (stream !== 1) continue;
    if (type === RST_STREAM || (type === HEADERS && (flags & END_STREAM) !== 0)) return true;
  }
  return false;
}

/** How many ids a call with these fields gets, sent as they are, one after the other. No client of HTTP/2 would send two. */
async function idsBy({ server }: TestServer, tokens: readonly string[]): Promise<number> {
  const before = server.counters.issuedIds;
  const raw = rawTo(server.grpcAddress);
  const head = [
    [":method", "POST"],
    [":scheme", "http"],
    [":authority", server.grpcAddress],
    [":path", "/idmint.v1.IdService/GenerateId"],
    ["te", "trailers"],
    ["content-type", "application/grpc"],
    ...tokens.map((token) => ["authorization", token]),
  ].map(([name = "", value = ""]) => field(name, value));
  const message = GenerateIdRequest.encode({ tag: "orders", name: "" }).finish();
  raw.socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  raw.socket.write(frame(SETTINGS, 0, 0, Buffer.alloc(0)));
  raw.socket.write(frame(HEADERS, END_HEADERS, 1, Buffer.concat(head)));
  raw.socket.write(frame(DATA, END_STREAM, 1, framed(message)));
  await until(() => raw.isClosed() || isOver(Buffer.from(raw.received(), "latin1")));
  raw.socket.destroy();
  return server.counters.issuedIds - before;
}

test.each(["fast", "grpc-js"])(
  "two tokens over gRPC, on the door %s, prove nobody",
  async (door) => {
    const it = await started({ "grpc-door": door });
    expect(await idsBy(it, [GOOD])).toBe(1);
    for (const tokens of [
      [GOOD, GOOD],
      [GOOD, "Bearer other"],
      ["Bearer other", GOOD],
      ["", GOOD],
      [GOOD, ""],
    ]) {
      expect(await idsBy(it, tokens), tokens.join()).toBe(0);
    }
  },
);

test("two tokens over HTTP prove nobody", async () => {
  const it = await started({});
  const raw = rawTo(it.server.httpAddress);
  const body = JSON.stringify({ tag: "orders" });
  const asked = [[GOOD], [GOOD, GOOD], [GOOD, "Bearer other"], ["Bearer other", GOOD]];
  for (const tokens of asked) {
    const fields = tokens.map((token) => `authorization: ${token}\r\n`).join("");
    raw.socket.write(
      `POST /idmint.v1.IdService/GenerateId HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${fields}\r\n${body}`,
    );
  }
  const answers = await raw.answers(asked.length);
  expect(answers.map(({ status }) => status)).toEqual([200, 401, 401, 401]);
});
