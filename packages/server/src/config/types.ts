import type { Rates } from "@idmint/core/server";
import { BACKENDS } from "../store/shared/backends.ts";
/** How an option's text becomes its value. */
export interface OptionType<T> {
  /** The placeholder of a value in help and docs, e.g. `host:port`. */
  readonly placeholder: string;
  /** What is accepted, as the rest of “must be …”. */
  readonly accepts: string;
  /** The value, or undefined if the text is not valid. */
  readonly parse: (text: string) => T | undefined;
}

/** Where to listen. */
export interface Address {
  readonly host: string;
  /** 0 … 65535; 0 takes any free port. */
  readonly port: number;
}

const ADDRESS = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})$/;

export const address: OptionType<Address> = {
  placeholder: "host:port",
  accepts: "host:port, with an IPv6 host in brackets and a port from 0 to 65535 (0: any free port)",
  parse: (text) => {
    const [, six, other, digits] = ADDRESS.exec(text) ?? [];
    const host = six ?? other;
    const port = Number(digits);
    return host === undefined || port > 65_535 ? undefined : { host, port };
  },
};

/** An address, or `none`. */
export const addressOrNone: OptionType<Address | "none"> = {
  placeholder: "host:port|none",
  accepts: `none, or ${address.accepts}`,
  parse: (value) => (value === "none" ? "none" : address.parse(value)),
};

const MAX_ADDRESSES = 64;

/** Addresses of other servers, separated by commas. */
export const addresses: OptionType<readonly string[]> = {
  placeholder: "host:port,…",
  accepts: `up to ${MAX_ADDRESSES} different host:port, separated by commas, with IPv6 hosts in brackets`,
  parse: (value) => {
    const all = value === "" ? [] : value.split(",").map((part) => part.trim());
    const areGood = all.every((each) => (address.parse(each)?.port ?? 0) > 0);
    if (!areGood || new Set(all).size !== all.length || all.length > MAX_ADDRESSES)
      return undefined;
    return all;
  },
};

/** Whether only this machine can reach an address. */
export function isLoopback({ host }: Address): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

export const flag: OptionType<boolean> = {
  placeholder: "",
  accepts: "true or false",
  parse: (text) => (text === "true" ? true : text === "false" ? false : undefined),
};

/** Any text that is not empty. */
export function text(placeholder: string): OptionType<string> {
  return {
    placeholder,
    accepts: "a text that is not empty",
    parse: (value) => (value === "" ? undefined : value),
  };
}

/** A name under which worker ids are leased. Processes and backups append to it. */
export const instanceText: OptionType<string> = {
  placeholder: "name",
  accepts: "1 to 112 characters of A–Z a–z 0–9 . _ : -, beginning with a letter or digit",
  parse: (value) => (/^[A-Za-z0-9][A-Za-z0-9._:-]{0,111}$/.test(value) ? value : undefined),
};

/** An integer. 1_000 and 1,000 are refused, because tools disagree about what they mean. */
export function integer(min: number, max: number): OptionType<number> {
  return {
    placeholder: "n",
    accepts: `an integer from ${min} to ${max}`,
    parse: (value) => {
      const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
      return number >= min && number <= max ? number : undefined;
    },
  };
}

export function bigInteger(min: bigint, max: bigint): OptionType<bigint> {
  return {
    placeholder: "n",
    accepts: `an integer from ${min} to ${max}`,
    parse: (value) => {
      if (!/^\d{1,19}$/.test(value)) return undefined;
      const number = BigInt(value);
      return number >= min && number <= max ? number : undefined;
    },
  };
}

export function share(min: number, max: number): OptionType<number> {
  return {
    placeholder: "share",
    accepts: `a number from ${min} to ${max}`,
    parse: (value) => {
      const number = /^\d*\.?\d+$/.test(value) ? Number(value) : Number.NaN;
      return number >= min && number <= max ? number : undefined;
    },
  };
}

const MAX_RATE = 1_000_000_000;
const MAX_NAMED_RATES = 1_000;

function rate(value: string): { readonly rate: number | undefined } | undefined {
  if (value === "none") return { rate: undefined };
  const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  return number >= 1 && number <= MAX_RATE ? { rate: number } : undefined;
}

/** Rates a second: one for all, and those of some by name: `1000,orders=50000,demo=none`. */
export const rates: OptionType<Rates> = {
  placeholder: "rate,name=rate,…",
  accepts: `none or a whole number a second from 1 to ${MAX_RATE}, and up to ${MAX_NAMED_RATES} name=number or name=none behind it, separated by commas, with different names`,
  parse: (value) => {
    const named = new Map<string, number | undefined>();
    const [first = "", ...others] = value.split(",").map((part) => part.trim());
    const byDefault = rate(first);
    if (byDefault === undefined) return undefined;
    for (const part of others) {
      const [, name, written = ""] = /^([^=\s]+)=(.+)$/.exec(part) ?? [];
      const found = rate(written);
      if (name === undefined || found === undefined || named.has(name)) return undefined;
      named.set(name, found.rate);
    }
    return named.size <= MAX_NAMED_RATES ? { byDefault: byDefault.rate, named } : undefined;
  },
};

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
};

function milliseconds(value: string): number | undefined {
  const [, digits, unit] = /^(\d{1,9})(ms|s|m|min|h)$/.exec(value) ?? [];
  const factor = UNITS[unit ?? ""];
  return factor === undefined ? undefined : Number(digits) * factor;
}

/** A duration in milliseconds, written with its unit. Bounds are texts, so that docs show them as people type them. */
export function duration(min: string, max: string): OptionType<number> {
  const least = milliseconds(min) ?? 0;
  const most = milliseconds(max) ?? Infinity;
  return {
    placeholder: "duration",
    accepts: `a duration with its unit (ms, s, min, h), from ${min} to ${max}`,
    parse: (value) => {
      const ms = milliseconds(value);
      return ms === undefined || ms < least || ms > most ? undefined : ms;
    },
  };
}

/** A duration, or `none`, which is undefined. */
export function durationOrNone(min: string, max: string): OptionType<Offline> {
  const of = duration(min, max);
  return {
    placeholder: "duration|none",
    accepts: `none, or ${of.accepts}`,
    parse: (value) => {
      if (value === "none") return { ms: undefined };
      const ms = of.parse(value);
      return ms === undefined ? undefined : { ms };
    },
  };
}

/** How long; undefined: for ever. */
export interface Offline {
  readonly ms: number | undefined;
}

export const zoneText: OptionType<string> = {
  placeholder: "name",
  accepts:
    "empty, or 1 to 64 characters of A–Z a–z 0–9 . _ : -, the first of them a letter or digit",
  parse: (value) => (/^(?:[A-Za-z0-9][A-Za-z0-9._:-]{0,63})?$/.test(value) ? value : undefined),
};

export function oneOf<T extends string>(...values: readonly T[]): OptionType<T> {
  return {
    placeholder: values.join("|"),
    accepts: `one of ${values.join(", ")}`,
    parse: (value) => values.find((each) => each === value),
  };
}

/** Names from a known set, separated by commas. */
export function listOf(...values: readonly string[]): OptionType<readonly string[]> {
  return {
    placeholder: "name,…",
    accepts: `names separated by commas, out of ${values.join(", ")}`,
    parse: (value) => {
      const names = value === "" ? [] : value.split(",").map((name) => name.trim());
      return names.every((name) => values.includes(name)) ? names : undefined;
    },
  };
}

const URL_FORMS = Object.values(BACKENDS)
  .map(({ form }) => form)
  .join(", or ");

/** Where a store is: a file, or a database. Passwords have their own option, so that no URL holds a secret. */
export const storeUrl: OptionType<string> = {
  placeholder: "url",
  accepts: `${URL_FORMS}; put the password into IDMINT_STORE_PASSWORD`,
  parse: (value) => (Object.values(BACKENDS).some(({ isUrl }) => isUrl(value)) ? value : undefined),
};

const MAX_KEY_FILES = 64;
const MAX_KEY_ID = 999;

/** Key files by the numbers of their keys: `1=PATH,2=PATH`. */
export const keyFiles: OptionType<ReadonlyMap<number, string>> = {
  placeholder: "number=path,…",
  accepts: `up to ${MAX_KEY_FILES} number=path, separated by commas, with different numbers from 1 to ${MAX_KEY_ID}`,
  parse: (value) => {
    const files = new Map<number, string>();
    for (const part of value === "" ? [] : value.split(",")) {
      const [, number, path] = /^([1-9]\d{0,2})=(.+)$/.exec(part.trim()) ?? [];
      if (path === undefined || files.has(Number(number))) return undefined;
      files.set(Number(number), path);
    }
    return files.size <= MAX_KEY_FILES ? files : undefined;
  },
};

const MAX_NAMED_URLS = 64;
const NEXT_URL = /,(?=[^,]*:\/\/|[^,]*=|\s*(?:,|$))/;
const URL_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;

/**
 * Several URLs of one kind by name: `a=redis://…,b=redis://…`. A single one needs no name and is called `default`.
 */
function namedUrls(
  accepts: string,
  passwordEnv: string,
  isGood: (url: string) => boolean,
): OptionType<ReadonlyMap<string, string>> {
  return {
    placeholder: "name=url,…",
    accepts: `up to ${MAX_NAMED_URLS} name=url, separated by commas, or a single url; each ${accepts}; put the password into ${passwordEnv}`,
    parse: (value) => {
      // A URL may name several hosts, with commas between them.
      const parts = value === "" ? [] : value.split(NEXT_URL).map((part) => part.trim());
      const urls = new Map<string, string>();
      for (const part of parts) {
        const [, name = "default", url = ""] = /^(?:([^=:]*)=)?(.*)$/.exec(part) ?? [];
        const isNamed = name !== "default" || parts.length === 1 || part !== url;
        if (!isNamed || !URL_NAME.test(name) || urls.has(name) || !isGood(url)) return undefined;
        urls.set(name, url);
      }
      return urls.size <= MAX_NAMED_URLS ? urls : undefined;
    },
  };
}

const MAX_SENTINELS = 15;
/** Sentinels with their ports, the name of the master, and perhaps the number of its database. */
const SENTINEL_URL =
  /^rediss?\+sentinel:\/\/(?:[^:@/?#]*@)?([^@/?#]+)\/[A-Za-z0-9._-]+(?:\/\d{1,3})?$/;

/** The Redis servers by name. */
export const redisUrls: OptionType<ReadonlyMap<string, string>> = namedUrls(
  `redis://user@host:port/number, or redis+sentinel://user@host:port,host:port,host:port/master-name/number with up to ${MAX_SENTINELS} Sentinels of one master, or rediss:// and rediss+sentinel:// for TLS`,
  "IDMINT_REDIS_PASSWORD",
  (url) => {
    const [, hosts] = SENTINEL_URL.exec(url) ?? [];
    if (hosts !== undefined) return areSentinels(hosts.split(","));
    if (!URL.canParse(url)) return false;
    const { protocol, hostname, password, pathname, search } = new URL(url);
    const isRedis = /^rediss?:$/.test(protocol) && /^[^,]+$/.test(hostname);
    return isRedis && password === "" && search === "" && /^(?:\/\d{0,3})?$/.test(pathname);
  },
);

function areSentinels(hosts: readonly string[]): boolean {
  const isDistinct = new Set(hosts).size === hosts.length && hosts.length <= MAX_SENTINELS;
  return isDistinct && hosts.every((host) => (address.parse(host)?.port ?? 0) > 0);
}

function isDatabase(url: string): boolean {
  return !/^\w+:\/\/(?:[^@/]*@)?(?:[/?#]|$)/.test(url) && BACKENDS.postgres.isUrl(url);
}

/** Further databases of the store by name. */
export const moreUrls: OptionType<ReadonlyMap<string, string>> = namedUrls(
  BACKENDS.postgres.form,
  "IDMINT_STORE_PASSWORD",
  isDatabase,
);

/** The ticket databases by name. */
export const ticketUrls: OptionType<ReadonlyMap<string, string>> = namedUrls(
  BACKENDS.postgres.form,
  "IDMINT_TICKET_PASSWORD",
  isDatabase,
);

/** A receiver over HTTP. */
export const webhookUrl: OptionType<string> = {
  placeholder: "url",
  accepts: "https://host/path or http://host/path, without a user and a password",
  parse: (value) => {
    if (!/^https?:\/\//.test(value) || !URL.canParse(value)) return undefined;
    const { username, password, hash } = new URL(value);
    return username === "" && password === "" && hash === "" ? value : undefined;
  },
};

/** A value that an HTTP header can hold. Anything else would show up in the error of the HTTP client. */
export const headerToken: OptionType<string> = {
  placeholder: "token",
  accepts: "1 to 4096 ASCII characters without spaces",
  parse: (value) => (/^[!-~]{1,4096}$/.test(value) ? value : undefined),
};
