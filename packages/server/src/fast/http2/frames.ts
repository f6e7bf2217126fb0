/** The frames of HTTP/2 (RFC 9113, 4 to 7). */

export const PREFACE: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
export const FRAME_HEADER_BYTES = 9;

export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const FLAG = {
  ACK: 0x1,
  END_STREAM: 0x1,
  END_HEADERS: 0x4,
  PADDED: 0x8,
  PRIORITY: 0x20,
} as const;

export const SETTING = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;

/** RFC 9113, 7. */
export const CODE = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const;

export type Code = (typeof CODE)[keyof typeof CODE];

/** Largest payload that peers may send until they are told otherwise; they never are. */
export const MAX_FRAME_BYTES = 16_384;
/** Window of a stream and of a connection before any setting. */
export const FIRST_WINDOW = 65_535;
export const MAX_WINDOW = 0x7fffffff;

/** What ends the connection: the peer broke the protocol or a limit. */
export class ConnectionError extends Error {
  readonly code: Code;

  constructor(code: Code, why: string) {
    super(why);
    this.code = code;
  }
}

export function assertFrame(isRight: boolean, code: Code, why: string): void {
  if (!isRight) throw new ConnectionError(code, why);
}

/** Bytes of padding of a frame that may have some (RFC 9113, 6.1 and 6.2). */
export function paddingOf(flags: number, bytes: Buffer, from: number, to: number): number {
  if ((flags & FLAG.PADDED) === 0) return 0;
  const padding = from < to ? (bytes[from] ?? 0) : MAX_FRAME_BYTES;
  assertFrame(padding < to - from, CODE.PROTOCOL_ERROR, "more padding than payload");
  return padding;
}
