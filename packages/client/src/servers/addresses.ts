import { isIPv6 } from "node:net";

const MAX_ADDRESSES = 64;
const EXAMPLE = 'as in "ids.example:7600"';

/** A host and a port, where the host may be an IPv6 address in brackets. */
const HOST_AND_PORT = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<host>[^[\]:/?#@]+))(?::(?<port>\d*))?$/;
/** Targets of gRPC whose host and port stand behind the last slash or the first colon. */
const DNS = /^dns:(?:\/\/[^/]*\/)?(?<rest>[^/]*)$/;
/** Targets of gRPC that are no host and port. */
const OTHER_TARGET = /^(?:unix|unix-abstract|ipv4|ipv6):./;

/** The options that name servers. */
interface AddressOptions {
  readonly address?: string | undefined;
  readonly addresses?: readonly string[] | undefined;
}

type Refuse = (field: string, description: string) => void;

/** The addresses of the options, checked: what gRPC would only fail at later is refused at once. */
export function resolveAddresses(
  { address, addresses }: AddressOptions,
  refuse: Refuse,
): readonly string[] {
  if (address !== undefined && addresses !== undefined) {
    refuse("addresses", "cannot be given together with address");
  }
  const all = addresses ?? (address === undefined ? [] : [address]);
  const field = addresses === undefined ? "address" : "addresses";
  // Callers without types may give anything.
  if (!isList(all)) {
    refuse(field, "must be a list of addresses");
    return [];
  }
  const list: readonly unknown[] = all;
  if (list.length === 0) refuse(field, `is required: host and port of a server, ${EXAMPLE}`);
  if (list.length > MAX_ADDRESSES) {
    refuse(field, `must be at most ${MAX_ADDRESSES}, got ${list.length}`);
  }
  for (const entry of list) {
    const fault = faultOf(entry);
    if (fault !== undefined) refuse(field, fault);
  }
  // The same server twice would be asked twice when it is down.
  if (new Set(list).size !== list.length) refuse(field, "must not repeat an address");
  return [...all];
}

function isList(value: unknown): boolean {
  return Array.isArray(value);
}

/** What is wrong with an address; undefined: nothing that can be seen. */
function faultOf(address: unknown): string | undefined {
  if (typeof address !== "string") return `must be text, ${EXAMPLE}, got ${typeof address}`;
  if (address === "") return `must not be empty: give host and port, ${EXAMPLE}`;
  if (/\s/.test(address)) return `must be host:port without spaces, ${EXAMPLE}`;
  if (OTHER_TARGET.test(address)) return undefined;
  const target = DNS.exec(address)?.groups?.["rest"] ?? address;
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(target)?.[1];
  // An address may hold a password, so it is shown only where there cannot be one.
  if (scheme !== undefined) return schemeFault(scheme);
  if (isIPv6(target) || /^[0-9a-f]*:[0-9a-f:]*:\d+$/i.test(target)) {
    return 'must have an IPv6 address in brackets, as in "[::1]:7600"';
  }
  const { port, host, v6 } = HOST_AND_PORT.exec(target)?.groups ?? {};
  if (host === undefined && v6 === undefined) return `must be host:port, ${EXAMPLE}`;
  if (port === undefined || port === "") return `must name a port, ${EXAMPLE}, got "${target}"`;
  const isPort = Number(port) >= 1 && Number(port) <= 65_535;
  return isPort ? undefined : `must have a port from 1 to 65535, got "${target}"`;
}

/** Whether the address of a list can be used: a host and a port, and no other target of gRPC. */
export function isListedAddress(address: string): boolean {
  return faultOf(address) === undefined && HOST_AND_PORT.test(address);
}

function schemeFault(scheme: string): string {
  const tls = scheme.toLowerCase() === "https" ? "; for TLS set the option tls" : "";
  return `must be host:port without ${scheme}://, ${EXAMPLE}${tls}`;
}

/** Whether what is sent to an address stays on this machine. */
export function isOnThisMachine(address: string): boolean {
  if (/^unix(?:-abstract)?:/.test(address)) return true;
  const target = DNS.exec(address)?.groups?.["rest"] ?? address.replace(/^ipv[46]:/, "");
  const { host = "", v6 = "" } = HOST_AND_PORT.exec(target)?.groups ?? {};
  return host === "localhost" || v6 === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
