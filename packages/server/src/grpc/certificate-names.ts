import type { ServerDuplexStream, ServerUnaryCall } from "@grpc/grpc-js";
import { namesNow, NOTHING_SHOWN, shownBy, type ShownNames } from "../tls/names.ts";

type AnyCall = ServerUnaryCall<unknown, unknown> | ServerDuplexStream<unknown, unknown>;

/** The names in the certificates of callers. Reading one takes longer than a call, so it is done once for a connection. */
export class CertificateNames {
  readonly #takesCommonNames: boolean;
  readonly #known = new WeakMap<object, ShownNames>();

  constructor(takesCommonNames: boolean) {
    this.#takesCommonNames = takesCommonNames;
  }

  /** Empty without a certificate that was verified, and when it has expired. */
  of(call: AnyCall): readonly string[] {
    const session = sessionOf(call);
    let shown = session === undefined ? undefined : this.#known.get(session);
    if (shown === undefined) {
      const certificate = call.getAuthContext().sslPeerCertificate;
      shown =
        certificate === undefined ? NOTHING_SHOWN : shownBy(certificate, this.#takesCommonNames);
      if (session !== undefined) this.#known.set(session, shown);
    }
    return namesNow(shown);
  }
}

/** The field is private in grpc-js; where it is not as expected, certificates are read with every call. */
function sessionOf(call: AnyCall): object | undefined {
  const { call: inner } = call as { call?: { stream?: { session?: unknown } } };
  const session = inner?.stream?.session;
  return typeof session === "object" && session !== null ? session : undefined;
}
