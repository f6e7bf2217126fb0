// A connection without a socket: frames in, frames out.
import { Connection } from "../../src/fast/http2/connection.ts";
import { CODE, FLAG, FRAME, PREFACE } from "../../src/fast/http2/frames.ts";
import { type Field, kept, plain } from "../../src/fast/http2/hpack/encode.ts";
import { Lifetime } from "../../src/fast/http2/lifetime.ts";
import {
  CONNECTION_LIMITS,
  type ConnectionLimits,
  Held,
  type HeldOfAll,
} from "../../src/fast/http2/limits.ts";
import { Out } from "../../src/fast/http2/out.ts";
import { type Call, END, type Stream } from "../../src/fast/http2/stream.ts";

export function frame(type: number, flags: number, id: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(9 + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(id, 5);
  bytes.set(payload, 9);
  return bytes;
}

export const NOTHING: Buffer = Buffer.alloc(0);

export function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function settings(...values: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(values.length * 6);
  for (const [at, [id, value]] of values.entries()) {
    payload.writeUInt16BE(id, at * 6);
    payload.writeUInt32BE(value, at * 6 + 2);
  }
  return frame(FRAME.SETTINGS, 0, 0, payload);
}

export const SETTINGS_ACK: Buffer = frame(FRAME.SETTINGS, FLAG.ACK, 0, NOTHING);
export const HELLO: Buffer = Buffer.concat([PREFACE, settings(), SETTINGS_ACK]);

export function block(fields: readonly Field[]): Buffer {
  return Buffer.from(fields.flatMap(([name, value]) => plain(name, value)));
}

/** A block whose fields enter the table. */
export function keptBlock(fields: readonly Field[]): Buffer {
  return Buffer.from(fields.flatMap(([name, value]) => kept(name, value)));
}

export function requestFields(path: string, more: readonly Field[] = []): readonly Field[] {
  return [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "here"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...more,
  ];
}

/** HEADERS of a request; `flags`: beside END_HEADERS. */
export function request(id: number, path: string, flags = 0, more: readonly Field[] = []): Buffer {
  return frame(FRAME.HEADERS, FLAG.END_HEADERS | flags, id, block(requestFields(path, more)));
}

export function data(id: number, payload: Uint8Array, flags = 0): Buffer {
  return frame(FRAME.DATA, flags, id, payload);
}

/** A frame that was sent. */
export interface Sent {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
}

const TYPES = Object.fromEntries(Object.entries(FRAME).map(([name, type]) => [type, name]));
const CODES = Object.fromEntries(Object.entries(CODE).map(([name, code]) => [code, name]));

/** In a few words, for tables of tests. */
export function told({ type, flags, id, payload }: Sent): string {
  const name = TYPES[type] ?? String(type);
  const isLast = (flags & FLAG.END_STREAM) !== 0;
  switch (type) {
    case FRAME.RST_STREAM:
      return `${name} ${id} ${CODES[payload.readUInt32BE()]}`;
    case FRAME.GOAWAY:
      return `${name} ${payload.readUInt32BE()} ${CODES[payload.readUInt32BE(4)]}`;
    case FRAME.WINDOW_UPDATE:
      return `${name} ${id} ${payload.readUInt32BE()}`;
    case FRAME.SETTINGS:
    case FRAME.PING:
      return `${name}${isLast ? " ACK" : ""}`;
    case FRAME.DATA:
      return `${name} ${id} ${payload.length}${isLast ? " END" : ""}`;
    default:
      return `${name} ${id}${isLast ? " END" : ""}`;
  }
}

/** All whole frames of some bytes. */
export function framesOf(bytes: Buffer): Sent[] {
  const frames: Sent[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    if (end > bytes.length) throw new Error("half a frame was sent");
    const [type = 0, flags = 0] = [bytes[at + 3], bytes[at + 4]];
    frames.push({
      type,
      flags,
      id: bytes.readUInt32BE(at + 5),
      payload: bytes.subarray(at + 9, end),
    });
    at = end;
  }
  return frames;
}

/**
 * What the paths of requests do: `/echo` answers with the body when it is complete, `/hold` when the test says so, `/early` at
 * once, `/big` with as many bytes as the body has, times 1,000.
 */
class TestCall implements Call {
  readonly stream: Stream;
  readonly #its: TestConnection;
  readonly #body: Buffer[] = [];
  isAborted = false;
  isHeld: boolean;

  constructor(its: TestConnection, stream: Stream) {
    this.#its = its;
    this.stream = stream;
    this.isHeld = stream.head.path === "/hold";
  }

  received(bytes: Buffer, from: number, to: number, isLast: boolean): boolean {
    this.#body.push(Buffer.from(bytes.subarray(from, to)));
    if (isLast && !this.isHeld) this.answer();
    return to - from > 0;
  }

  aborted(): void {
    this.isAborted = true;
    if (!this.isHeld) this.#its.release(this);
  }

  drained(): void {
    this.#its.drained++;
  }

  leave(): void {
    this.#its.left++;
    if (this.stream.head.path !== "/hold") this.answer();
  }

  answer(): void {
    const { sender } = this.#its.connection;
    const body = Buffer.concat(this.#body);
    const times = this.stream.head.path === "/big" ? 1_000 : 1;
    sender.head(this.stream);
    sender.data(this.stream, Buffer.alloc(body.length * times, body));
    sender.end(this.stream, END.OK);
  }

  /** Its handler has ended. */
  ended(): void {
    this.isHeld = false;
    if (this.isAborted) this.#its.release(this);
    else this.answer();
  }
}

export class TestConnection {
  readonly connection: Connection;
  /** How often there was too much of what was begun. */
  rooms = 0;
  readonly held: HeldOfAll = { bytes: 0, kept: 0, begun: 0, makeRoom: () => this.rooms++ };
  readonly calls = new Set<TestCall>();
  readonly failures: unknown[] = [];
  readonly #out: Out;
  readonly #its: Held;
  #chunks: Buffer[] = [];
  /** Whether the socket takes what is written at once. */
  takes = true;
  #waiting: (() => void)[] = [];
  now = 0;
  writes = 0;
  drained = 0;
  left = 0;
  isEnded = false;
  isDestroyed = false;

  constructor(limits: Partial<ConnectionLimits> = {}, maxAgeMs = Infinity, tableBytes?: number) {
    const held = new Held(this.held, { ...CONNECTION_LIMITS, ...limits });
    this.#its = held;
    this.#out = new Out((bytes, done) => {
      this.#chunks.push(Buffer.from(bytes));
      this.writes++;
      if (this.takes) done();
      else this.#waiting.push(done);
    }, held);
    this.connection = new Connection(
      {
        out: this.#out,
        held,
        lifetime: new Lifetime(0, maxAgeMs),
        now: () => this.now,
        awake: () => this.now,
        end: () => {
          this.isEnded = true;
        },
        destroy: () => {
          this.isDestroyed = true;
        },
        failed: (cause) => this.failures.push(cause),
      },
      { ...CONNECTION_LIMITS, ...limits },
    );
    this.connection.begin((stream, isTooLarge) => {
      if (isTooLarge || stream.head.path === "/early") {
        this.connection.sender.end(stream, block([[":status", "200"]]));
        return;
      }
      const call = new TestCall(this, stream);
      this.calls.add(call);
      stream.user = call;
    }, tableBytes);
  }

  release(call: TestCall): void {
    this.calls.delete(call);
    this.connection.requests.release(call.stream);
  }

  /** Answers what was sent since the last time. */
  bytes(): Buffer {
    this.#out.flush();
    const bytes = Buffer.concat(this.#chunks);
    this.#chunks = [];
    return bytes;
  }

  sent(): Sent[] {
    return framesOf(this.bytes());
  }

  /** Whether it keeps more than it may. */
  get isTooMuch(): boolean {
    return this.#its.isTooMuch;
  }

  /** Bytes that the socket has not taken. */
  get queued(): number {
    return this.#out.queued;
  }

  take(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const done of waiting) done();
  }

  /** Sends frames, and answers what they were answered with. */
  send(...frames: readonly Buffer[]): string[] {
    this.connection.receive(Buffer.concat(frames));
    return this.sent().map(told);
  }

  look(atMs: number): string[] {
    this.now = atMs;
    this.connection.look();
    return this.sent().map(told);
  }
}

/** One that has begun. */
export function begun(limits: Partial<ConnectionLimits> = {}): TestConnection {
  const it = new TestConnection(limits);
  it.send(HELLO);
  return it;
}
