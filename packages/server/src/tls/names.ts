import type { PeerCertificate } from "node:tls";

const ENTRY = /(DNS|URI|email|IP Address):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y;

/** What the certificate of a connection says, until it expires. */
export interface ShownNames {
  readonly names: readonly string[];
  readonly untilMs: number;
}

export const NOTHING_SHOWN: ShownNames = { names: [], untilMs: Infinity };

/** Of a certificate that was verified. */
export function shownBy(
  { subject, subjectaltname = "", valid_to: validTo }: PeerCertificate,
  takesCommonNames: boolean,
): ShownNames {
  const { CN: commonName } = subject;
  const names = alternativeNames(subjectaltname);
  const isTaken = takesCommonNames && typeof commonName === "string";
  return { names: isTaken ? [...names, commonName] : names, untilMs: Date.parse(validTo) };
}

/** Empty when the certificate has expired meanwhile. */
export function namesNow({ names, untilMs }: ShownNames): readonly string[] {
  return Date.now() < untilMs ? names : NOTHING_SHOWN.names;
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
