import { AllocateSegmentRequest, AllocateSegmentResponse } from "@idmint/proto";
import { type Codec, writtenByHand } from "./codec.ts";
import { KnownRequests } from "./known-requests.ts";
import { segmentsSize, writeSegments } from "./segments.ts";
import { textSize, writeText } from "./text.ts";
import { numberSize, varintSize, writeNumber, writeVarint } from "./varint.ts";

// Answers as servers give them, of tags whose segments expire or do not. Whatever else there is goes to the generated code.

const known = new KnownRequests<AllocateSegmentRequest>((bytes) =>
  AllocateSegmentRequest.decode(bytes),
);

const EPOCH = 0x10;
const RELEASE_TOKEN = 0x1a;
const MAX_AGE = 0x22;
const ORDER = 0x28;
const MAX_COUNT = 0x30;
const NODES_VERSION = 0x3d;
const NODE_ID = 0x42;
/** Of a Duration. */
const SECONDS = 0x08;
const NANOS = 0x10;

export const allocateSegmentRequest: Codec<AllocateSegmentRequest> = {
  decode: (bytes) => known.of(bytes, 0, bytes.length),
  decodeAt: (bytes, from, to) => known.of(bytes, from, to),
  encode: (message) => AllocateSegmentRequest.encode(message),
};

export const allocateSegmentResponse: Codec<AllocateSegmentResponse> = writtenByHand(
  AllocateSegmentResponse,
  {
    sizeOf: ({
      segments,
      epoch,
      releaseToken,
      maxAge,
      order,
      maxCount,
      nodesVersion,
      nodeId,
    }): number => {
      const all = segmentsSize(segments);
      const [token, node, age] = [textSize(releaseToken), textSize(nodeId), ageSize(maxAge)];
      const isUsual = epoch > 0n && order > 0 && maxCount > 0 && nodesVersion > 0;
      if (!isUsual || all < 0 || token < 0 || node < 0 || age < 0) return -1;
      const head = 1 + numberSize(age) + age;
      const numbers = 3 + varintSize(epoch) + numberSize(order) + numberSize(maxCount);
      return all + token + node + head + numbers + 5;
    },
    write: (message, bytes, begin) => {
      const { maxAge, order, maxCount, nodesVersion } = message;
      let at = writeSegments(message.segments, bytes, begin);
      bytes[at] = EPOCH;
      at = writeVarint(bytes, at + 1, message.epoch);
      at = writeText(bytes, at, RELEASE_TOKEN, message.releaseToken);
      bytes[at] = MAX_AGE;
      at = writeNumber(bytes, at + 1, ageSize(maxAge));
      at = writeAge(bytes, at, maxAge);
      bytes[at] = ORDER;
      at = writeNumber(bytes, at + 1, order);
      bytes[at] = MAX_COUNT;
      at = writeNumber(bytes, at + 1, maxCount);
      bytes[at] = NODES_VERSION;
      bytes[at + 1] = nodesVersion;
      bytes[at + 2] = nodesVersion >>> 8;
      bytes[at + 3] = nodesVersion >>> 16;
      bytes[at + 4] = nodesVersion >>> 24;
      writeText(bytes, at + 5, NODE_ID, message.nodeId);
    },
  },
);

type Age = AllocateSegmentResponse["maxAge"];

/** -1: there is none, or none that says how long. */
function ageSize(age: Age): number {
  if (age === undefined || age.seconds < 0n || age.nanos < 0) return -1;
  const seconds = age.seconds === 0n ? 0 : 1 + varintSize(age.seconds);
  return seconds + (age.nanos === 0 ? 0 : 1 + numberSize(age.nanos));
}

function writeAge(bytes: Uint8Array, begin: number, age: Age): number {
  let at = begin;
  const { seconds = 0n, nanos = 0 } = age ?? {};
  if (seconds !== 0n) {
    bytes[at] = SECONDS;
    at = writeVarint(bytes, at + 1, seconds);
  }
  if (nanos === 0) return at;
  bytes[at] = NANOS;
  return writeNumber(bytes, at + 1, nanos);
}
