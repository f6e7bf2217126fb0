// What real clients sent, as recorded/record.ts kept it: our HPACK and that of node:http2 (nghttp2) find the same fields.
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Http2Server } from "node:http2";
import path from "node:path";
import { Duplex } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { FLAG, FRAME, FRAME_HEADER_BYTES, PREFACE } from "../../../src/fast/http2/frames.ts";
import { HpackDecoder } from "../../../src/fast/http2/hpack/decoder.ts";
import type { Recording } from "./recorded/record.ts";
import { framesOf } from "../test-connection.ts";

const folder = path.join(import.meta.dirname, "recorded");
const MOST_LIST = 64 * 1_024;

/** Names and values of the fields of one request, in turn. */
type Fields = readonly string[];

/** The recorded bytes up to the last whole frame. */
function whole(bytes: Buffer): Buffer {
  let end = PREFACE.length;
  for (;;) {
    if (bytes.length - end < FRAME_HEADER_BYTES) return bytes.subarray(0, end);
    const next = end + FRAME_HEADER_BYTES + bytes.readUIntBE(end, 3);
    if (next > bytes.length) return bytes.subarray(0, end);
    end = next;
  }
}

/** The fields of each header block, by our decoder. */
function ours(bytes: Buffer): Fields[] {
  const decoder = new HpackDecoder(MOST_LIST);
  const found: Fields[] = [];
  let block: Buffer = Buffer.alloc(0);
  for (const { type, flags, payload } of framesOf(bytes.subarray(PREFACE.length))) {
    if (type !== FRAME.HEADERS && type !== FRAME.CONTINUATION) continue;
    const padded = type === FRAME.HEADERS && (flags & FLAG.PADDED) !== 0;
    const from =
      (padded ? 1 : 0) + (type === FRAME.HEADERS && (flags & FLAG.PRIORITY) !== 0 ? 5 : 0);
    const to = payload.length - (padded ? (payload[0] ?? 0) : 0);
    block = Buffer.concat([block, payload.subarray(from, to)]);
    if ((flags & FLAG.END_HEADERS) === 0) continue;
    const fields: string[] = [];
    decoder.decode(block, 0, block.length, ({ name, value }) => fields.push(name, value));
    found.push(fields);
    block = Buffer.alloc(0);
  }
  return found;
}

class Wire extends Duplex {
  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done();
  }

  override _read(): void {
    // What is pushed is there.
  }
}

/** The same by node:http2, which gets the same bytes. Fulfils when it found as many. */
async function theirs(bytes: Buffer, count: number): Promise<Fields[]> {
  const settings = { maxHeaderListSize: MOST_LIST };
  const server: Http2Server = createServer({ settings, maxHeaderListPairs: 1_000 });
  const found: Fields[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.on("stream", (stream, _headers, _flags, raw) => {
    stream.on("error", () => undefined);
    found.push(raw);
    if (found.length === count) resolve();
  });
  server.on("sessionError", reject);
  const wire = new Wire();
  onTestFinished(() => {
    wire.destroy();
  });
  server.emit("connection", wire);
  wire.push(bytes);
  await promise;
  return found;
}

const recordings = readdirSync(folder).filter((file) => file.endsWith(".json"));

test("there are recordings", () => {
  expect(recordings.length).toBeGreaterThan(4);
});

test.each(recordings)("we decode what node:http2 does of %s", async (file) => {
  const { connections } = JSON.parse(readFileSync(path.join(folder, file), "utf8")) as Recording;
  let requests = 0;
  for (const connection of connections) {
    const bytes = whole(Buffer.from(connection, "base64"));
    const found = ours(bytes);
    if (found.length > 0) expect(found).toEqual(await theirs(bytes, found.length));
    requests += found.length;
    for (const fields of found) expect(fields).toContain(":path");
  }
  expect(requests).toBeGreaterThan(1);
});
