// Every suite is a test of secrets too: no process that it begins may say one that it was given, or has made.
import { existsSync, readFileSync, statSync } from "node:fs";

type Environment = Readonly<Record<string, string>>;

/** Shorter ones stand in other texts by chance. */
const MIN_LENGTH = 6;
const MAX_FILE_BYTES = 64 * 1_024;
const SECRET_OPTION = /^IDMINT_\w*(PASSWORD|TOKEN|KEYS?)(_FILE)?$/;
const PASSWORD_OF_URL = /^[a-z+]*:?\/\/[^/@]*?:([^/@]+)@/;
const LABEL = /^\w+=(?=.)/;
/** Signs of secrets that nobody was given: a bearer token that was made, and the key of a certificate. */
const SIGNS = [/idm_[0-9a-f]{16}_[A-Za-z0-9_-]{43}/, /-----BEGIN [A-Z ]*PRIVATE KEY-----/];

/** What a process is given in its environment, or in files that are named there, and must not say. */
export function secretsIn(env: Environment): readonly string[] {
  const secrets = Object.entries(env).flatMap(([name, value]) => {
    const inUrl = PASSWORD_OF_URL.exec(value)?.[1];
    if (inUrl !== undefined) return [inUrl, decoded(inUrl)];
    if (!SECRET_OPTION.test(name)) return [];
    return value.split(",").flatMap((each) => {
      const text = each.replace(LABEL, "");
      return isSmallFile(text) ? readFileSync(text, "utf8").trim().split("\n") : [text];
    });
  });
  return secrets.filter((secret) => secret.length >= MIN_LENGTH && !secret.startsWith("-----"));
}

/** A secret that a text holds; undefined: none. */
export function leakIn(text: string, secrets: readonly string[]): string | undefined {
  const known = secrets.find((secret) => text.includes(secret));
  return known ?? SIGNS.map((sign) => sign.exec(text)?.[0]).find((found) => found !== undefined);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function isSmallFile(name: string): boolean {
  return existsSync(name) && statSync(name).isFile() && statSync(name).size <= MAX_FILE_BYTES;
}
