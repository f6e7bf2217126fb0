import type { RedisOptions } from "ioredis";
import { invalidField } from "../errors.ts";
import { MasterConnector } from "./master-connector.ts";

/** What a URL does not hold. */
export interface SentinelSecrets {
  /** Password of the Redis. One in the URL wins. */
  readonly password?: string | undefined;
  /** User and password of the Sentinels, which have their own. */
  readonly sentinelUser?: string | undefined;
  readonly sentinelPassword?: string | undefined;
}

const MAX_SENTINELS = 15;
const FORM = `must be redis+sentinel://host:port,host:port,host:port/master-name, with up to ${MAX_SENTINELS} different Sentinels, or rediss+sentinel:// for TLS`;
const URL_OF_SENTINELS =
  /^(rediss?)\+sentinel:\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^@/?#]+)\/([\w.-]+)(?:\/(\d{1,3}))?$/;
const ADDRESS = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/;

/** Whether a text is meant to name a master by its Sentinels. */
export function namesSentinels(url: string): boolean {
  return /^rediss?\+sentinel:/.test(url);
}

/**
 * Options of ioredis that lead to the master which the Sentinels of `redis+sentinel://user@host:port,host:port/name` name.
 * A number after the name is that of the database. With `rediss+sentinel`, the Sentinels and the Redis servers are asked
 * by TLS.
 */
export function sentinelOptions(url: string, secrets: SentinelSecrets = {}): RedisOptions {
  // The text is not repeated: it may hold a password.
  const parts = URL_OF_SENTINELS.exec(url);
  if (parts === null) throw invalidField("url", FORM);
  const [, scheme, user = "", password, hosts = "", name = "", database = "0"] = parts;
  const sentinels = hosts.split(",").map(addressOf);
  const distinct = new Set(sentinels.map(({ host, port }) => `${host} ${port}`));
  if (distinct.size !== sentinels.length || sentinels.length > MAX_SENTINELS) {
    throw invalidField("url", FORM);
  }
  const secret = password === undefined ? secrets.password : decoded(password);
  const { sentinelUser, sentinelPassword } = secrets;
  return {
    sentinels,
    name,
    db: Number(database),
    ...(user === "" ? {} : { username: decoded(user) }),
    ...(secret === undefined ? {} : { password: secret }),
    ...(sentinelUser === undefined ? {} : { sentinelUsername: sentinelUser }),
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    ...(scheme === "rediss" ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
    Connector: MasterConnector,
  };
}

function addressOf(text: string): { readonly host: string; readonly port: number } {
  const [, six, other, digits] = ADDRESS.exec(text) ?? [];
  const host = six ?? other;
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65_535) throw invalidField("url", FORM);
  return { host, port };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidField("url", FORM);
  }
}
