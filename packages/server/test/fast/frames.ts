// Frames of HTTP/2 over a socket, for what no library sends.
import { connect, type Socket } from "node:net";
import { Code } from "@idmint/proto/rpc";
import { onTestFinished } from "vitest";
import { CODE, FLAG, FRAME, PREFACE } from "../../src/fast/http2/frames.ts";
import { HpackDecoder } from "../../src/fast/http2/hpack/decoder.ts";
import type { Field } from "../../src/fast/http2/hpack/fields.ts";
import { until } from "../support.ts";
import { frame, framesOf, type Sent, settings, SETTINGS_ACK } from "./test-connection.ts";

export const GREETING: Buffer = Buffer.concat([PREFACE, settings(), SETTINGS_ACK]);
const CODES = Object.fromEntries(Object.entries(CODE).map(([name, code]) => [code, name]));
const GRPC_CODES = Object.fromEntries(Object.entries(Code).map(([name, code]) => [code, name]));
const BEHIND = Buffer.from("behind..", "latin1");

/** A connection that ends with the test, and what came on it. */
export class RawFrames {
  readonly socket: Socket;
  readonly frames: Sent[] = [];
  isClosed = false;
  #rest: Buffer = Buffer.alloc(0);
  readonly #hpack = new HpackDecoder(64 * 1_024);
  /** Header fields of each stream, in the order in which they came. */
  readonly #fields = new Map<number, Field[]>();

  constructor(address: string) {
    const { hostname, port } = new URL(`http://${address}`);
    this.socket = connect(Number(port), hostname);
    this.socket.on("error", () => undefined);
    this.socket.once("close", () => (this.isClosed = true));
    this.socket.on("data", (chunk: Buffer) => this.#take(chunk));
    onTestFinished(() => void this.socket.destroy());
  }

  send(...frames: readonly Uint8Array[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /** What came on a stream, but for updates of its window. */
  on(id: number): readonly Sent[] {
    return this.frames.filter((each) => each.id === id && each.type !== FRAME.WINDOW_UPDATE);
  }

  /** A field of the answer on a stream. */
  field(id: number, name: string): string | undefined {
    return this.#fields.get(id)?.find((each) => each.name === name)?.value;
  }

  /** Fulfils when all was answered that was sent before. */
  async settled(): Promise<void> {
    const acks = (): number =>
      this.frames.filter(({ type, payload }) => type === FRAME.PING && payload.equals(BEHIND))
        .length;
    const before = acks();
    this.send(frame(FRAME.PING, 0, 0, BEHIND));
    await until(() => this.isClosed || acks() > before);
  }

  /** How the request on stream 1 ended, or the connection, in a few words; of a request that goes on: nothing. */
  outcome(): string {
    const bad = this.frames.find(
      ({ type, payload }) => type === FRAME.GOAWAY && payload.readUInt32BE(4) !== CODE.NO_ERROR,
    );
    if (bad !== undefined) return `GOAWAY ${CODES[bad.payload.readUInt32BE(4)]}`;
    const status = this.field(1, ":status");
    const code = this.field(1, "grpc-status");
    if (code !== undefined) return code === "0" ? "answered" : (GRPC_CODES[code] ?? code);
    const isDone = this.on(1).some(({ type, flags }) => type <= 1 && (flags & FLAG.END_STREAM) > 0);
    if (status !== undefined && status !== "200" && isDone) return `HTTP ${status}`;
    const reset = this.on(1).find(({ type }) => type === FRAME.RST_STREAM);
    if (reset !== undefined) return `RST_STREAM ${CODES[reset.payload.readUInt32BE()]}`;
    return this.isClosed ? "closed" : "";
  }

  #take(chunk: Buffer): void {
    const all = Buffer.concat([this.#rest, chunk]);
    let end = 0;
    while (all.length - end >= 9) {
      const next = end + 9 + all.readUIntBE(end, 3);
      if (next > all.length) break;
      end = next;
    }
    this.#rest = all.subarray(end);
    for (const sent of framesOf(all.subarray(0, end))) {
      this.frames.push(sent);
      const { type, id, payload } = sent;
      if (type !== FRAME.HEADERS) continue;
      const fields = this.#fields.get(id) ?? [];
      this.#fields.set(id, fields);
      this.#hpack.decode(payload, 0, payload.length, (field) => fields.push(field));
    }
  }
}
