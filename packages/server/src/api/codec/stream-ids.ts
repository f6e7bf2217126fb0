import { type GenerateIdsResponse, StreamIdsRequest, StreamIdsResponse } from "@idmint/proto";
import { type Codec, writtenByHand } from "./codec.ts";
import { plainIdSize, writePlainId } from "./generate-id.ts";
import { KnownRequests } from "./known-requests.ts";
import { segmentsSize, writeSegments } from "./segments.ts";
import { numberSize, varintSize, writeNumber, writeVarint } from "./varint.ts";

// A stream has many small messages, which differ in their number and in the ids. Whatever is not as usual goes to the
// generated code.

/** Fields of requests. */
const CALL = 0x08;
const TAG = 0x12;
const COUNT = 0x18;
const NAME = 0x22;
/** Fields of answers, beside `call`. */
const ONE = 0x12;
const MANY = 0x1a;
/** Of many ids. */
const EPOCH = 0x18;

/** What follows the number of a call: mostly nothing, or the same tag and count again and again. */
const known = new KnownRequests<StreamIdsRequest>((bytes) => StreamIdsRequest.decode(bytes));

export const streamIdsRequest: Codec<StreamIdsRequest> = {
  decode: (bytes) => decodeAt(bytes, 0, bytes.length),
  decodeAt,
  encode: (message) => StreamIdsRequest.encode(message),
};

function decodeAt(bytes: Uint8Array, from: number, to: number): StreamIdsRequest {
  let at = from;
  let call = 0;
  if (at < to && bytes[at] === CALL) {
    let factor = 1;
    let octet: number;
    do {
      octet = bytes[++at] ?? 0;
      call += (octet & 0x7f) * factor;
      factor *= 0x80;
    } while (octet >= 0x80 && at - from < 4);
    at++;
    // Longer numbers are rare.
    if (octet >= 0x80 || at > to) return StreamIdsRequest.decode(bytes.subarray(from, to));
  }
  if (at === to) return { call, tag: "", count: 0, name: "" };
  if (!isRest(bytes, at, to)) return StreamIdsRequest.decode(bytes.subarray(from, to));
  const { tag, count, name } = known.of(bytes, at, to);
  return { call, tag, count, name };
}

/** Whether these are tag, count and name, each at most once and in this order, and short. */
function isRest(bytes: Uint8Array, from: number, to: number): boolean {
  let at = from;
  if (bytes[at] === TAG) at = behindText(bytes, at);
  if (at < to && bytes[at] === COUNT) {
    do at++;
    while (at < to && (bytes[at] ?? 0) >= 0x80);
    at++;
  }
  if (at < to && bytes[at] === NAME) at = behindText(bytes, at);
  return at === to;
}

function behindText(bytes: Uint8Array, at: number): number {
  const length = bytes[at + 1] ?? 0x80;
  return length < 0x80 ? at + 2 + length : Infinity;
}

export const streamIdsResponse: Codec<StreamIdsResponse> = writtenByHand(StreamIdsResponse, {
  sizeOf: ({ call, result }) => {
    const size =
      result?.$case === "one"
        ? plainIdSize(result.value)
        : result?.$case === "many"
          ? plainIdsSize(result.value)
          : -1;
    if (size < 0) return -1;
    return (call === 0 ? 0 : 1 + numberSize(call)) + 1 + numberSize(size) + size;
  },
  write: ({ call, result }, bytes, begin) => {
    let at = begin;
    if (call !== 0) {
      bytes[at] = CALL;
      at = writeNumber(bytes, at + 1, call);
    }
    if (result?.$case === "one") {
      bytes[at] = ONE;
      at = writeNumber(bytes, at + 1, plainIdSize(result.value));
      writePlainId(result.value, bytes, at);
    } else if (result?.$case === "many") {
      bytes[at] = MANY;
      at = writeNumber(bytes, at + 1, plainIdsSize(result.value));
      at = writeSegments(result.value.segments, bytes, at);
      bytes[at] = EPOCH;
      writeVarint(bytes, at + 1, result.value.epoch);
    }
  },
});

/** Segments and their epoch, and nothing else; -1: more than that. */
function plainIdsSize(many: GenerateIdsResponse): number {
  const { ids, texts, epoch, period, periodEndTime, nodesVersion, nodeId } = many;
  const isPlain =
    ids.length === 0 &&
    texts.length === 0 &&
    epoch > 0n &&
    period === "" &&
    periodEndTime === undefined &&
    nodesVersion === 0 &&
    nodeId === "";
  const segments = isPlain ? segmentsSize(many.segments) : -1;
  return segments < 0 ? -1 : segments + 1 + varintSize(epoch);
}
