import { type Field, KNOWN } from "./hpack/fields.ts";

/** Most metadata fields of a request that nobody here reads but traces. */
const PSEUDO_FIELDS = [KNOWN.METHOD, KNOWN.SCHEME, KNOWN.PATH, KNOWN.AUTHORITY] as const;
const SEEN = Object.fromEntries(PSEUDO_FIELDS.map((known) => [known, 1 << known]));
const BEHIND_PSEUDO = 1 << 30;
const MAX_LENGTH_DIGITS = 15;
const DIGIT_0 = 0x30;

/**
 * The head of one request, as it is put together field by field.
 *
 * `fault` says why it is malformed in the sense of RFC 9113, 8.1.1; the stream ends with PROTOCOL_ERROR then.
 */
export class Head {
  method = "";
  path = "";
  contentType = "";
  timeout = "";
  encoding = "";
  traceparent = "";
  tracestate = "";
  /** Undefined: none was sent. Empty: two were, and nobody knows which one is meant. */
  authorization: string | undefined = undefined;
  /** -1: not said. */
  contentLength = -1;
  fault = "";
  #authority = "";
  #host: string | undefined;
  #seen = 0;

  /** As before any field. */
  clear(): void {
    this.method = "";
    this.path = "";
    this.contentType = "";
    this.timeout = "";
    this.encoding = "";
    this.traceparent = "";
    this.tracestate = "";
    this.authorization = undefined;
    this.contentLength = -1;
    this.fault = "";
    this.#authority = "";
    this.#host = undefined;
    this.#seen = 0;
  }

  /** Takes the next field. */
  readonly take = (field: Field): void => {
    const { known, value } = field;
    if (field.isBad) this.fault ||= "a field's value that no field may have";
    switch (known) {
      case KNOWN.METHOD:
        this.method = value;
        this.#pseudo(known);
        return;
      case KNOWN.PATH:
        this.path = value;
        this.#pseudo(known);
        return;
      case KNOWN.AUTHORITY:
        this.#authority = value;
        this.#pseudo(known);
        return;
      case KNOWN.SCHEME:
        this.#pseudo(known);
        return;
      case KNOWN.OTHER_PSEUDO:
        this.fault ||= "a pseudo-header that requests do not have";
        return;
      case KNOWN.HOST:
        if (this.#host !== undefined) this.fault ||= "a host twice";
        this.#host = value;
        break;
      case KNOWN.CONTENT_TYPE:
        this.contentType = value;
        break;
      case KNOWN.TIMEOUT:
        this.timeout = value;
        break;
      case KNOWN.ENCODING:
        this.encoding = value;
        break;
      case KNOWN.AUTHORIZATION:
        this.authorization = this.authorization === undefined ? value : "";
        break;
      case KNOWN.TRACEPARENT:
        this.traceparent = value;
        break;
      case KNOWN.TRACESTATE:
        this.tracestate = this.tracestate === "" ? value : `${this.tracestate},${value}`;
        break;
      case KNOWN.TE:
        if (value !== "trailers") this.fault ||= "te other than trailers";
        break;
      case KNOWN.CONTENT_LENGTH:
        this.#length(value);
        break;
      case KNOWN.CONNECTION:
        this.fault ||= "a field of HTTP/1.1's connections";
        break;
      case KNOWN.BAD_NAME:
        this.fault ||= "a field's name that no field may have";
        break;
      case KNOWN.OTHER:
        break;
    }
    this.#seen |= BEHIND_PSEUDO;
  };

  /** To be called behind the last field. */
  end(): void {
    // RFC 9113, 8.3.1: exactly one of each; an authority may be missing.
    const wanted = (1 << KNOWN.METHOD) | (1 << KNOWN.SCHEME) | (1 << KNOWN.PATH);
    if ((this.#seen & wanted) !== wanted) this.fault ||= "a missing pseudo-header";
    else if (this.path === "") this.fault ||= "an empty path";
    else if (!isSameHost(this.#authority, this.#host))
      this.fault ||= "a host beside another authority";
  }

  #pseudo(known: number): void {
    const bit = SEEN[known] ?? 0;
    if ((this.#seen & bit) !== 0) this.fault ||= "a pseudo-header twice";
    else if ((this.#seen & BEHIND_PSEUDO) !== 0) this.fault ||= "a pseudo-header behind a field";
    this.#seen |= bit;
  }

  #length(value: string): void {
    const length = lengthOf(value);
    if (length < 0 || (this.contentLength !== -1 && this.contentLength !== length)) {
      this.fault ||= "a content-length that says nothing";
    } else {
      this.contentLength = length;
    }
  }
}

/** Whether both name one server. Of two, nobody knows which one is meant, and a proxy may have looked at the other one. */
function isSameHost(authority: string, host: string | undefined): boolean {
  if (host === undefined || host === authority || authority === "") return true;
  return host.toLowerCase() === authority.toLowerCase();
}

/** Of a body: 1 to 15 digits; -1: none of these. */
function lengthOf(value: string): number {
  if (value === "" || value.length > MAX_LENGTH_DIGITS) return -1;
  let length = 0;
  for (let i = 0; i < value.length; i++) {
    const digit = value.charCodeAt(i) - DIGIT_0;
    if (digit < 0 || digit > 9) return -1;
    length = 10 * length + digit;
  }
  return length;
}

/** The fields behind a body. gRPC's requests have none that anybody reads; they are checked and left. */
export class Trailers {
  fault = "";

  readonly take = (field: Field): void => {
    const { known } = field;
    const isPseudo = known >= KNOWN.METHOD && known <= KNOWN.OTHER_PSEUDO;
    if (isPseudo) this.fault ||= "a pseudo-header behind the body";
    else if (field.isBad || known === KNOWN.BAD_NAME || known === KNOWN.CONNECTION) {
      this.fault ||= "a field that trailers may not have";
    }
  };
}
