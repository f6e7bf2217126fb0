import type { MessageWriter } from "../../api/codec/codec.ts";
import type { WireStatus } from "../../api/status/wire-status.ts";
import type { Connection } from "../http2/connection.ts";
import { PREFIX_BYTES } from "./deframer.ts";
import { ACCEPTED } from "./encoding.ts";
import { encodeMessage } from "./grpc.ts";
import type { Field } from "../http2/hpack/encode.ts";
import { failure, otherHead } from "../http2/response-heads.ts";
import type { Sender } from "../http2/sender.ts";
import { END, type Stream } from "../http2/stream.ts";

/** What the fields of a head count beside their text (RFC 7541, 4.1). */
const FIELD_BYTES = 32;
/** What `:status` and `content-type` count, which stand in one head with a status that comes alone. */
const HEAD_BYTES = 102;
/** Most that trailers may count: what many peers take, and no more than a frame holds. */
const MAX_TRAILERS_BYTES = 8 * 1_024;

/** What those read who ask in a browser, or by HTTP alone. */
const OTHER_TEXT: Buffer = Buffer.from(
  "This port speaks gRPC: POST, content-type application/grpc.\n",
  "latin1",
);

/** Writes gRPC's answers to the streams of one connection. */
export class Answers {
  readonly #connection: Connection;
  readonly #sender: Sender;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#sender = connection.sender;
  }

  /** The head of an answer. */
  begin(stream: Stream): void {
    stream.hasHead = true;
    this.#sender.head(stream);
  }

  /** A message that is written already. Answers whether the peer takes more at once. */
  bytes(stream: Stream, message: Uint8Array): boolean {
    return this.#sender.data(stream, framed(message));
  }

  /** A message that is written now, into `size` bytes, as its writer says. */
  message<T>(stream: Stream, writer: MessageWriter<T>, message: T, size: number): boolean {
    if (!this.#sender.takes(stream, size)) return this.bytes(stream, writer.encode(message));
    const at = this.#sender.message(stream, size);
    writer.write(message, this.#sender.bytes, at);
    return true;
  }

  end(stream: Stream): void {
    this.#sender.end(stream, END.OK);
  }

  /** Ends an answer with a status other than OK. */
  fail(stream: Stream, status: WireStatus): void {
    // What the peer does not take would end its connection, and the status with it.
    const limit = Math.min(this.#connection.peer.maxHeaderList, MAX_TRAILERS_BYTES);
    const isWhole = !stream.hasHead;
    const known = isWhole && limit === MAX_TRAILERS_BYTES ? blocks.get(status) : undefined;
    this.#sender.end(stream, known ?? blockOf(status, limit, isWhole));
  }

  /** Ends an answer that knows no details. `encodings`: the caller is told which ones are read. */
  refuse(
    stream: Stream,
    code: number,
    message: string,
    { encodings = false }: { readonly encodings?: boolean } = {},
  ): void {
    const fields: Field[] = [
      ["grpc-status", String(code)],
      ["grpc-message", encodeMessage(message)],
    ];
    if (encodings) fields.push(["grpc-accept-encoding", ACCEPTED]);
    this.#sender.end(stream, failure(fields, !stream.hasHead));
  }

  /** An answer that is none of gRPC: whoever asks so is no client of it. */
  refuseHttp(stream: Stream, status: number): void {
    this.#sender.otherHead(stream, otherHead(status));
    this.#sender.data(stream, OTHER_TEXT);
    this.#sender.end(stream, END.NOTHING);
  }
}

/**
 * What is answered with statuses that never change, to peers that take all of it: a server that refuses many calls makes each of
 * them once.
 */
const blocks = new WeakMap<WireStatus, Uint8Array>();

function blockOf(status: WireStatus, limit: number, isWhole: boolean): Uint8Array {
  const { code, message, details } = status;
  const fields: Field[] = [
    ["grpc-status", String(code)],
    ["grpc-message", encodeMessage(message)],
  ];
  if (details.length > 0) fields.push(["grpc-status-details-bin", base64(details)]);
  while (fields.length > 1 && sizeOf(fields) > limit) fields.pop();
  const block = failure(fields, isWhole);
  const isKept = isWhole && limit === MAX_TRAILERS_BYTES && Object.isFrozen(status);
  if (isKept) blocks.set(status, block);
  return block;
}

function framed(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}

function base64(bytes: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = bytes;
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64").replaceAll("=", "");
}

function sizeOf(fields: readonly Field[]): number {
  return fields.reduce(
    (sum, [name, value]) => sum + name.length + value.length + FIELD_BYTES,
    HEAD_BYTES,
  );
}
