// What a warm call leaves behind for the garbage collector.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { GenerateIdRequest } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { FLAG, FRAME } from "../../src/fast/http2/frames.ts";
import { kept } from "../../src/fast/http2/hpack/encode.ts";
import { clientsOf, createTag } from "../support.ts";
import type { Gained } from "./heap-child.ts";
import { frame, HELLO, number } from "./test-connection.ts";
import { framed } from "./wire.ts";

/** Most that a warm GenerateId may take of the heap. */
const HEAP_BYTES = 600;
/** Outside there is only what Node.js reads into: a buffer for each chunk. */
const OUTSIDE_BYTES = 1;
const CONNECTIONS = 8;
const AT_ONCE = 16;
const CALLS = 20_000;
/** The least counts: whatever else the server does meanwhile is never less than nothing. */
const TIMES = 4;

const TAG = "orders";
const MESSAGE = framed(GenerateIdRequest.encode({ tag: TAG, name: "" }).finish());
const PATH = "/idmint.v1.IdService/GenerateId";

/** As nghttp2 has it, and with it Node.js, curl and h2load: path and length come as text with each call. */
function text(name: number, value: string): Buffer {
  const head = name < 15 ? [name] : [15, name - 15];
  return Buffer.concat([Buffer.from([...head, value.length]), Buffer.from(value, "latin1")]);
}

const BEGIN = Buffer.concat([Buffer.from([0x83, 0x86]), text(4, PATH)]);
const LENGTH = text(28, String(MESSAGE.length));
const KEPT = [
  [":authority", "127.0.0.1"],
  ["content-type", "application/grpc"],
  ["te", "trailers"],
].flatMap(([name = "", value = ""]) => kept(name, value));
const FIRST = Buffer.concat([BEGIN, Buffer.from(KEPT), LENGTH]);
const LATER = Buffer.concat([BEGIN, Buffer.from([0xc0, 0xbf, 0xbe]), LENGTH]);

/** One connection that has `AT_ONCE` calls in flight, written and answered together. */
class Caller {
  readonly #socket;
  #next = 1;
  #unread = 0;
  #rest: Buffer = Buffer.alloc(0);
  #answered = 0;
  #wake: (() => void) | undefined;
  /** Bytes that were sent. */
  sent = 0;

  constructor(address: string) {
    const [host = "", port = ""] = address.split(":");
    this.#socket = connect({ host, port: Number(port), noDelay: true });
    onTestFinished(() => void this.#socket.destroy());
    this.#socket.on("data", (chunk) => this.#read(chunk));
    this.#socket.write(HELLO);
  }

  async call(count: number): Promise<void> {
    for (let left = count; left > 0; left -= AT_ONCE) {
      const frames: Buffer[] = [
        frame(FRAME.WINDOW_UPDATE, 0, 0, number(Math.max(1, this.#unread))),
      ];
      this.#unread = 0;
      for (let i = 0; i < AT_ONCE; i++, this.#next += 2) {
        const block = this.#next === 1 ? FIRST : LATER;
        frames.push(frame(FRAME.HEADERS, FLAG.END_HEADERS, this.#next, block));
        frames.push(frame(FRAME.DATA, FLAG.END_STREAM, this.#next, MESSAGE));
      }
      this.#answered = 0;
      const bytes = Buffer.concat(frames);
      this.sent += bytes.length;
      this.#socket.write(bytes);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #read(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= 9) {
      const length = bytes.readUIntBE(at, 3);
      if (at + 9 + length > bytes.length) break;
      const [type, flags = 0] = [bytes[at + 3], bytes[at + 4]];
      if (type === FRAME.DATA) this.#unread += length;
      if (type === FRAME.HEADERS && (flags & FLAG.END_STREAM) !== 0) this.#answered++;
      at += 9 + length;
    }
    this.#rest = bytes.subarray(at);
    if (this.#answered === AT_ONCE) this.#wake?.();
  }
}

async function startChild(): Promise<{ child: ChildProcess; address: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-heap-"));
  const child = spawn(
    process.execPath,
    [
      "-C",
      "idmint-source",
      "--expose-gc",
      "--min-semi-space-size=128",
      "--max-semi-space-size=128",
      path.join(import.meta.dirname, "heap-child.ts"),
      folder,
    ],
    { stdio: ["ignore", "pipe", "inherit", "ipc"] },
  );
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
    rmSync(folder, { recursive: true, force: true });
  });
  const [line] = (await once(child.stdout as NonNullable<typeof child.stdout>, "data")) as [Buffer];
  return { child, address: String(line).trim() };
}

test(`a warm GenerateId takes at most ${HEAP_BYTES} bytes of the heap, and none outside of it`, async () => {
  const { child, address } = await startChild();
  await createTag(clientsOf(address), TAG, { min: 10_000_000, max: 10_000_000 });
  const callers = Array.from({ length: CONNECTIONS }, () => new Caller(address));
  const call = () => Promise.all(callers.map((caller) => caller.call(CALLS / CONNECTIONS)));
  const ask = async <Answer>(message: "begin" | "end"): Promise<Answer> => {
    child.send(message);
    const [answer] = (await once(child, "message")) as [Answer];
    return answer;
  };
  // Until the compiler has seen everything.
  for (let i = 0; i < 5; i++) await call();
  const gained: Gained[] = [];
  for (let i = 0; i < TIMES; i++) {
    await ask("begin");
    const before = sentBy(callers);
    await call();
    const its = await ask<Gained>("end");
    gained.push({ ...its, outsideBytes: its.outsideBytes - (sentBy(callers) - before) });
  }
  const known = gained.filter(({ collections }) => collections === 0);
  const least = (pick: (its: Gained) => number): number => Math.min(...known.map(pick)) / CALLS;
  expect(known.length, JSON.stringify(gained)).toBeGreaterThan(0);
  expect(least(({ heapBytes }) => heapBytes)).toBeLessThanOrEqual(HEAP_BYTES);
  expect(least(({ outsideBytes }) => outsideBytes)).toBeLessThan(OUTSIDE_BYTES);
});

function sentBy(callers: readonly Caller[]): number {
  return callers.reduce((sum, { sent }) => sum + sent, 0);
}
