/** The fields that a door looks at. Any other is `OTHER`. */
export const KNOWN = {
  OTHER: 0,
  METHOD: 1,
  SCHEME: 2,
  PATH: 3,
  AUTHORITY: 4,
  OTHER_PSEUDO: 5,
  CONTENT_TYPE: 6,
  TE: 7,
  TIMEOUT: 8,
  ENCODING: 9,
  AUTHORIZATION: 10,
  TRACEPARENT: 11,
  TRACESTATE: 12,
  CONTENT_LENGTH: 13,
  /** What HTTP/2 has no place for (RFC 9113, 8.2.2). */
  CONNECTION: 14,
  /** A name that no field may have (RFC 9113, 8.2.1). */
  BAD_NAME: 15,
  HOST: 16,
} as const;

type Known = (typeof KNOWN)[keyof typeof KNOWN];

const NAMES: ReadonlyMap<string, Known> = new Map<string, Known>([
  [":method", KNOWN.METHOD],
  [":scheme", KNOWN.SCHEME],
  [":path", KNOWN.PATH],
  [":authority", KNOWN.AUTHORITY],
  ["host", KNOWN.HOST],
  ["content-type", KNOWN.CONTENT_TYPE],
  ["te", KNOWN.TE],
  ["grpc-timeout", KNOWN.TIMEOUT],
  ["grpc-encoding", KNOWN.ENCODING],
  ["authorization", KNOWN.AUTHORIZATION],
  ["traceparent", KNOWN.TRACEPARENT],
  ["tracestate", KNOWN.TRACESTATE],
  ["content-length", KNOWN.CONTENT_LENGTH],
  ["connection", KNOWN.CONNECTION],
  ["proxy-connection", KNOWN.CONNECTION],
  ["keep-alive", KNOWN.CONNECTION],
  ["transfer-encoding", KNOWN.CONNECTION],
  ["upgrade", KNOWN.CONNECTION],
]);

/** Octets that RFC 9113, 8.2.1 and gRPC allow in names of fields. */
const TOKEN = /^[0-9a-z!#$%&'*+.^_`|~-]+$/;
const PSEUDO = ":";
/** CR, LF and NUL end fields elsewhere, and blanks at an end are no part of a value (RFC 9113, 8.2.1). */
// oxlint-disable-next-line no-control-regex
const BAD_VALUE = /[\0\r\n]|^[ \t]|[ \t]$/;

/** One field of a header list. Fields of the tables are made once, and shared by all lists that name them. */
export interface Field {
  readonly name: string;
  readonly value: string;
  readonly known: Known;
  /** Whether no value may be as this one. */
  readonly isBad: boolean;
  /** As RFC 7541, 4.1 counts it. */
  readonly size: number;
}

export function sizeOf(nameLength: number, valueLength: number): number {
  return nameLength + valueLength + 32;
}

export function fieldOf(name: string, value: string): Field {
  return {
    name,
    value,
    known: knownOf(name),
    isBad: BAD_VALUE.test(value),
    size: sizeOf(name.length, value.length),
  };
}

function knownOf(name: string): Known {
  const known = NAMES.get(name);
  if (known !== undefined) return known;
  if (name.startsWith(PSEUDO)) return KNOWN.OTHER_PSEUDO;
  return TOKEN.test(name) ? KNOWN.OTHER : KNOWN.BAD_NAME;
}
