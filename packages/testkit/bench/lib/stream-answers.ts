// The requests of one StreamIds call that are in flight, and their answers, at a small part of what the server spends on
// them: no message is decoded but one in a thousand.
import { StreamIdsResponse } from "@idmint/proto";

/** Requests in flight have a place each; a power of two, and more than there ever are. */
const PLACES = 4_096;
/** Every so manyth answer is decoded, and its id kept. */
const SAMPLE = 1_000;
/** gRPC's prefix: not compressed, and the length of the message. */
const PREFIX = 5;
/** Field numbers and wire types of StreamIdsResponse, as they begin a field: call, a number, and one, a message. */
const CALL = 0x08;
const ONE = 0x12;

/**
 * Knows which requests are in flight. INVARIANT: each request that was sent is answered once, with an id; whatever else
 * comes throws.
 */
export class StreamAnswers {
  /** How long each request took, in milliseconds. */
  readonly latencies: number[] = [];
  /** Ids that were looked at. */
  readonly sample = new Set<bigint>();
  readonly #sentAt = new Float64Array(PLACES);
  readonly #calls = new Uint32Array(PLACES);
  #inFlight = 0;
  #rest: Buffer = Buffer.alloc(0);

  get inFlight(): number {
    return this.#inFlight;
  }

  /** `call`: from 1. `now`: any clock, in milliseconds. */
  sent(call: number, now: number): void {
    const place = call & (PLACES - 1);
    if (this.#calls[place] !== 0) {
      throw new Error(`request ${this.#calls[place]} is not answered, and ${call} is sent already`);
    }
    this.#calls[place] = call;
    this.#sentAt[place] = now;
    this.#inFlight++;
  }

  /** Bytes of the stream, which end anywhere. */
  read(bytes: Buffer, now: number): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = 0;
    while (all.length - at >= PREFIX) {
      const begin = at + PREFIX;
      const end = begin + all.readUInt32BE(at + 1);
      if (all[at] !== 0) throw new Error("an answer is compressed");
      if (all.length < end) break;
      this.#answered(all, begin, end, now);
      at = end;
    }
    this.#rest = all.subarray(at);
  }

  #answered(bytes: Buffer, begin: number, end: number, now: number): void {
    let at = begin;
    let call = 0;
    if (bytes[at] === CALL) {
      let factor = 1;
      let byte: number;
      do {
        byte = bytes[++at] ?? 0;
        call += (byte & 0x7f) * factor;
        factor *= 0x80;
      } while (byte >= 0x80);
      at++;
    }
    const place = call & (PLACES - 1);
    if (call === 0 || this.#calls[place] !== call) {
      throw new Error(`an answer to request ${call}, which is not in flight`);
    }
    if (at >= end || bytes[at] !== ONE) {
      throw new Error(`request ${call} was refused: ${textOf(bytes.subarray(begin, end))}`);
    }
    this.#calls[place] = 0;
    this.#inFlight--;
    if (this.latencies.push(now - (this.#sentAt[place] ?? 0)) % SAMPLE === 0) {
      this.#look(bytes.subarray(begin, end));
    }
  }

  #look(message: Buffer): void {
    const { result } = StreamIdsResponse.decode(message);
    const id = result?.$case === "one" ? result.value.id : 0n;
    if (id <= 0n || this.sample.has(id)) throw new Error(`no id of its own: ${textOf(message)}`);
    this.sample.add(id);
  }
}

function textOf(message: Buffer): string {
  return JSON.stringify(StreamIdsResponse.toJSON(StreamIdsResponse.decode(message)));
}
