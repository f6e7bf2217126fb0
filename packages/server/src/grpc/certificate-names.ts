import type { ServerDuplexStream, ServerUnaryCall } from "@grpc/grpc-js";

type AnyCall = ServerUnaryCall<unknown, unknown> | ServerDuplexStream<unknown, unknown>;
type Certificate = NonNullable<ReturnType<AnyCall["getAuthContext"]>["sslPeerCertificate"]>;

/** What the certificate of a connection says, until it expires. */
interface Shown {
  readonly names: readonly string[];
  readonly untilMs: number;
}

const NOTHING: Shown = { names: [], untilMs: Infinity };
const ENTRY = /(DNS|URI|email|IP Address):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y;

/** The names in the certificates of callers. Reading one takes longer than a call, so it is done once for a connection. */
export class CertificateNames {
  readonly #takesCommonNames: boolean;
  readonly #known = new WeakMap<object, Shown>();

  constructor(takesCommonNames: boolean) {
    this.#takesCommonNames = takesCommonNames;
  }

  /** Empty without a certificate that was verified, and when it has expired. */
  of(call: AnyCall): readonly string[] {
    const session = sessionOf(call);
    let shown = session === undefined ? undefined : this.#known.get(session);
    if (shown === undefined) {
      const certificate = call.getAuthContext().sslPeerCertificate;
      shown = certificate === undefined ? NOTHING : this.#shownBy(certificate);
      if (session !== undefined) this.#known.set(session, shown);
    }
    return Date.now() < shown.untilMs ? shown.names : NOTHING.names;
  }

  #shownBy({ subject, subjectaltname = "", valid_to: validTo }: Certificate): Shown {
    const { CN: commonName } = subject;
    const names = alternativeNames(subjectaltname);
    const isTaken = this.#takesCommonNames && typeof commonName === "string";
    return { names: isTaken ? [...names, commonName] : names, untilMs: Date.parse(validTo) };
  }
}

/**
 * The alternative names as Node writes them: names with special characters are in quotes, as in JSON. A text that is
 * anything else has no names, so nobody slips one in.
 */
export function alternativeNames(text: string): readonly string[] {
  const names: string[] = [];
  ENTRY.lastIndex = 0;
  while (ENTRY.lastIndex < text.length) {
    const [, , name = ""] = ENTRY.exec(text) ?? [];
    if (ENTRY.lastIndex === 0) return [];
    names.push(name.startsWith('"') ? (JSON.parse(name) as string) : name);
  }
  return names;
}

/** The field is private in grpc-js; where it is not as expected, certificates are read with every call. */
function sessionOf(call: AnyCall): object | undefined {
  const { call: inner } = call as { call?: { stream?: { session?: unknown } } };
  const session = inner?.stream?.session;
  return typeof session === "object" && session !== null ? session : undefined;
}
