import {
  CODE,
  ConnectionError,
  FIRST_WINDOW,
  MAX_FRAME_BYTES,
  MAX_WINDOW,
  SETTING,
} from "./frames.ts";
import { TABLE_BYTES } from "./hpack/decoder.ts";

/** SETTINGS in one frame; more say nothing new. */
const MAX_SETTINGS = 32;
const SETTING_BYTES = 6;

/** What the peer wants of what we send (RFC 9113, 6.5.2). */
export class PeerSettings {
  initialWindow: number = FIRST_WINDOW;
  /** Whether it ever asked for a table smaller than HTTP/2's own. */
  hasSmallTable = false;
  /** Largest header list it takes, as RFC 7541 counts. */
  maxHeaderList: number = Infinity;

  /** Takes one frame. Answers by how much the windows of open streams move. */
  take(bytes: Buffer, from: number, to: number): number {
    const length = to - from;
    if (length % SETTING_BYTES !== 0) {
      throw new ConnectionError(CODE.FRAME_SIZE_ERROR, "SETTINGS of another size");
    }
    if (length > MAX_SETTINGS * SETTING_BYTES) {
      throw new ConnectionError(CODE.ENHANCE_YOUR_CALM, "too many settings");
    }
    const before = this.initialWindow;
    for (let at = from; at < to; at += SETTING_BYTES) {
      this.#set(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2));
    }
    return this.initialWindow - before;
  }

  #set(setting: number, value: number): void {
    switch (setting) {
      case SETTING.HEADER_TABLE_SIZE:
        if (value < TABLE_BYTES) this.hasSmallTable = true;
        break;
      case SETTING.ENABLE_PUSH:
        if (value > 1) throw new ConnectionError(CODE.PROTOCOL_ERROR, "ENABLE_PUSH beyond 1");
        break;
      case SETTING.INITIAL_WINDOW_SIZE:
        if (value > MAX_WINDOW) {
          throw new ConnectionError(CODE.FLOW_CONTROL_ERROR, "a window too large");
        }
        this.initialWindow = value;
        break;
      case SETTING.MAX_FRAME_SIZE:
        // It may only be larger than what we send at most.
        if (value < MAX_FRAME_BYTES || value > 2 ** 24 - 1) {
          throw new ConnectionError(CODE.PROTOCOL_ERROR, "a frame size that may not be");
        }
        break;
      case SETTING.MAX_HEADER_LIST_SIZE:
        this.maxHeaderList = value;
        break;
      default:
        // RFC 9113, 6.5.2: unknown settings are ignored.
        break;
    }
  }
}
