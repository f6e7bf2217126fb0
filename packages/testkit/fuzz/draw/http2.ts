// Traffic of clients, broken at random, the same way for the same seed.
import { GenerateIdRequest } from "@idmint/proto";
import { framed } from "../../bench/lib/h2load.ts";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  firstHeaders,
  frame,
  LATER_HEADERS,
  PREFACE,
  TYPE,
} from "../../bench/lib/http2-frames.ts";
import type { Dice } from "../../sim/world/random.ts";
import { broken } from "./bytes.ts";

const CONTINUATION = 9;
const PRIORITY = 2;
const PADDED = 8;
const NOTHING = Buffer.alloc(0);

function below(dice: Dice, limit: number): number {
  return dice.int(0, limit - 1);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** What a client says on one connection, frame by frame; nothing of it is wrong. */
function conversation(dice: Dice, tag: string): Buffer[] {
  const message = framed(GenerateIdRequest.encode({ tag, name: "" }).finish());
  const window = Buffer.concat([Buffer.from([0, 4]), number(dice.pick([0, 10, 65_535, 2 ** 20]))]);
  const frames = [PREFACE, frame(TYPE.settings, 0, 0, dice.pick([NOTHING, window]))];
  frames.push(frame(TYPE.settings, ACK, 0, NOTHING));
  const path = dice.pick(["GenerateId", "GenerateId", "StreamIds", "Nothing"]);
  let headers = firstHeaders("here", `/idmint.v1.IdService/${path}`);
  for (let stream = 1; stream < 2 + 2 * below(dice, 6); stream += 2) {
    const cut = below(dice, headers.length);
    const isCut = below(dice, 4) === 0;
    if (isCut) {
      frames.push(frame(TYPE.headers, 0, stream, headers.subarray(0, cut)));
      frames.push(frame(CONTINUATION, END_HEADERS, stream, headers.subarray(cut)));
    } else frames.push(frame(TYPE.headers, END_HEADERS, stream, headers));
    headers = LATER_HEADERS;
    const padded = Buffer.concat([Buffer.from([2]), message, Buffer.alloc(2)]);
    const part = below(dice, message.length);
    frames.push(
      ...dice.pick([
        [frame(TYPE.data, END_STREAM, stream, message)],
        [frame(TYPE.data, END_STREAM | PADDED, stream, padded)],
        [
          frame(TYPE.data, 0, stream, message.subarray(0, part)),
          frame(TYPE.data, END_STREAM, stream, message.subarray(part)),
        ],
        [frame(TYPE.data, 0, stream, message), frame(TYPE.reset, 0, stream, number(8))],
      ]),
      ...dice.pick([
        [],
        [frame(TYPE.ping, 0, 0, Buffer.alloc(8))],
        [frame(TYPE.window, 0, dice.pick([0, stream]), number(1 + below(dice, 1_000)))],
        [frame(PRIORITY, 0, stream, Buffer.alloc(5))],
        [frame(TYPE.goAway, 0, 0, Buffer.alloc(8))],
      ]),
    );
  }
  return frames;
}

/** Breaks frames: some are lost, come twice or elsewhere, or have a head that is not theirs. */
function breakFrames(dice: Dice, frames: Buffer[]): void {
  if (frames.length < 2) return;
  const at = 1 + below(dice, frames.length - 1);
  const one = frames[at] as Buffer;
  switch (below(dice, 6)) {
    case 0:
      frames.splice(at, 1);
      break;
    case 1:
      frames.splice(below(dice, frames.length), 0, one);
      break;
    case 2:
      // Its type, its flags or its stream.
      one[3 + below(dice, 6)] = below(dice, 256);
      break;
    case 3:
      one[2] = below(dice, 256);
      break;
    case 4:
      frames[at] = frame(below(dice, 12), below(dice, 256), below(dice, 12), one.subarray(9));
      break;
    default:
      frames[at] = frame(
        one[3] ?? 0,
        one[4] ?? 0,
        1 + 2 * below(dice, 4),
        Buffer.alloc(below(dice, 300), below(dice, 256)),
      );
  }
}

/** The bytes of one connection: frames in an order of their own, broken in one to four places. */
export function mutatedStream(dice: Dice, tag: string): Buffer {
  const frames = conversation(dice, tag).map((each) => Buffer.from(each));
  for (let faults = dice.int(0, 3); faults > 0; faults--) breakFrames(dice, frames);
  const bytes = Buffer.concat(frames);
  return dice.chance(0.7) ? broken(dice, bytes) : bytes;
}
