// Another HTTP/2 at the other end: node:http2 (nghttp2) decodes what we send, and we what it does.
import { type ClientHttp2Session, connect, type Settings } from "node:http2";
import { Duplex } from "node:stream";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { HpackDecoder } from "../../../src/fast/http2/hpack/decoder.ts";
import { FLAG, FRAME, PREFACE } from "../../../src/fast/http2/frames.ts";
import { framesOf, SETTINGS_ACK, settings, TestConnection } from "../test-connection.ts";

/** A socket that has what the client writes handed to `take`. */
class Wire extends Duplex {
  readonly #take: (chunk: Buffer, wire: Wire) => void;

  constructor(take: (chunk: Buffer, wire: Wire) => void) {
    super();
    this.#take = take;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#take(chunk, this);
    done();
  }

  override _read(): void {
    // Whatever is pushed is there.
  }
}

function session(wire: Wire, options: Settings = {}): ClientHttp2Session {
  const client = connect("http://here", { createConnection: () => wire, settings: options });
  client.on("error", () => undefined);
  onTestFinished(() => client.destroy());
  return client;
}

interface Answer {
  readonly status: unknown;
  readonly type: unknown;
  readonly end: unknown;
  readonly body: Buffer;
}

function call(client: ClientHttp2Session, path: string, body: Buffer): Promise<Answer> {
  const fields = {
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  };
  const stream = client.request(fields);
  const chunks: Buffer[] = [];
  return new Promise((resolve, reject) => {
    let head: Record<string, unknown> = {};
    let end: unknown;
    stream.on("response", (fields) => (head = fields));
    stream.on("trailers", (fields: Record<string, unknown>) => {
      end = fields["grpc-status"];
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("end", () =>
      resolve({
        status: head[":status"],
        type: head["content-type"],
        end,
        body: Buffer.concat(chunks),
      }),
    );
    stream.end(body);
  });
}

test.each<[string, Settings]>([
  ["the usual settings", {}],
  ["no table", { headerTableSize: 0 }],
  ["a small table", { headerTableSize: 100 }],
  ["a large table", { headerTableSize: 65_536 }],
  ["a small window", { initialWindowSize: 300 }],
  ["a large window and large frames", { initialWindowSize: 1_000_000, maxFrameSize: 1_000_000 }],
])("another HTTP/2 reads our answers, with %s", async (_name, options) => {
  const it = new TestConnection();
  const wire = new Wire((chunk, to) => {
    it.connection.receive(chunk);
    const bytes = it.bytes();
    // A client that reads while it writes ends the process of node:http2.
    if (bytes.length > 0) setImmediate(() => to.push(bytes));
  });
  wire.push(it.bytes());
  const client = session(wire, options);
  const bodies = Array.from({ length: 40 }, (_, at) => Buffer.alloc(at * 11, at));
  const answers = await Promise.all(bodies.map((body) => call(client, "/echo", body)));
  for (const [at, { status, type, end, body }] of answers.entries()) {
    expect([status, type, end]).toEqual([200, "application/grpc", "0"]);
    expect(body).toEqual(bodies[at]);
  }
  const big = Buffer.from("0123456789".repeat(20));
  const both = await Promise.all([call(client, "/big", big), call(client, "/big", big)]);
  for (const { body } of both) expect(body).toEqual(Buffer.alloc(200_000, big));
  // Settings that come later hold from then on.
  client.settings({ headerTableSize: 0, initialWindowSize: 100 });
  for (const body of bodies.slice(0, 5)) {
    expect(await call(client, "/echo", body)).toMatchObject({ end: "0", body });
  }
  client.settings({ headerTableSize: 4_096 });
  expect(await call(client, "/echo", big)).toMatchObject({ status: 200, end: "0", body: big });
  expect(it.connection.slots).toBe(0);
  expect(it.held.bytes).toBe(0);
  expect(it.failures).toEqual([]);
});

/** What a client of node:http2 sends for these heads, once it knows our settings. */
function recorded(heads: readonly Record<string, string>[]): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  const blocks: Buffer[] = [];
  const { promise, resolve } = Promise.withResolvers<Buffer[]>();
  const wire = new Wire((chunk) => {
    chunks.push(Buffer.from(chunk));
    const bytes = Buffer.concat(chunks).subarray(PREFACE.length);
    blocks.length = 0;
    for (const { type, flags, payload } of whole(bytes)) {
      if (type !== FRAME.HEADERS && type !== FRAME.CONTINUATION) continue;
      const begin = (flags & FLAG.PRIORITY) === 0 || type !== FRAME.HEADERS ? 0 : 5;
      const part = payload.subarray(begin);
      if (type === FRAME.HEADERS) blocks.push(part);
      else blocks.push(Buffer.concat([blocks.pop() ?? part, part]));
    }
    if (blocks.length === heads.length) resolve(blocks);
  });
  const client = session(wire);
  wire.push(Buffer.concat([settings([3, 1_000], [6, 100_000]), SETTINGS_ACK]));
  client.once("remoteSettings", () => {
    for (const head of heads)
      client
        .request(head)
        .on("error", () => undefined)
        .end();
  });
  return promise;
}

function whole(bytes: Buffer): ReturnType<typeof framesOf> {
  let end = 0;
  while (bytes.length - end >= 9 && bytes.length - end >= 9 + bytes.readUIntBE(end, 3)) {
    end += 9 + bytes.readUIntBE(end, 3);
  }
  return framesOf(bytes.subarray(0, end));
}

const NAME = fc.constantFrom("x-a", "x-b", "user-agent", "grpc-timeout", "x-a-name-that-is-longer");
const VALUE = fc.oneof(
  fc.constantFrom("1S", "grpc-node/1", "application/grpc"),
  fc
    .string({ unit: "grapheme-ascii", minLength: 1, maxLength: 60 })
    .map((text) => `a${text.trim()}`),
  fc.integer({ min: 1, max: 3_000 }).map((length) => "z".repeat(length)),
);

test("we decode what another encoder sends: Huffman's code, its table, and what it evicts", async () => {
  const property = fc.asyncProperty(
    fc.array(fc.dictionary(NAME, VALUE, { maxKeys: 5 }), { minLength: 1, maxLength: 30 }),
    async (heads) => {
      const sent = heads.map((more, at) => ({
        ":method": "POST",
        ":path": `/p${at % 3}`,
        ...more,
      }));
      const blocks = await recorded(sent);
      const decoder = new HpackDecoder(100_000);
      for (const [at, block] of blocks.entries()) {
        const found: Record<string, string> = {};
        decoder.decode(block, 0, block.length, ({ name, value }) => (found[name] = value));
        expect(found).toEqual({ ...sent[at], ":scheme": "http", ":authority": "here:80" });
      }
    },
  );
  await fc.assert(property, { numRuns: process.env["IDMINT_LONG"] === "1" ? 2_000 : 40 });
});
