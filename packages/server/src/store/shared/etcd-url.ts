/** What a URL of an etcd says. It never holds a user or a password. */
export interface EtcdPlace {
  /** host:port of the members. */
  readonly hosts: readonly string[];
  /** What all keys begin with; it begins and ends with a slash. */
  readonly prefix: string;
  readonly tls: boolean;
}

/** Most members of one URL. */
export const MAX_MEMBERS = 16;
const URL_FORM = /^etcd(s?):\/\/([^/@?#]+)((?:\/[A-Za-z0-9._-]+)*)\/?$/u;
const MEMBER =
  /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?):([0-9]{1,5})$/u;
const DEFAULT_PREFIX = "/idmint";

/** undefined when the text cannot be meant. */
export function etcdPlace(text: string): EtcdPlace | undefined {
  const [, secure, members, path = ""] = URL_FORM.exec(text) ?? [];
  if (members === undefined) return undefined;
  const hosts = members.split(",");
  const areGood = hosts.every((host) => {
    const port = Number(MEMBER.exec(host)?.[1]);
    return port >= 1 && port <= 65_535;
  });
  if (!areGood || hosts.length > MAX_MEMBERS || new Set(hosts).size < hosts.length)
    return undefined;
  return { hosts, prefix: `${path === "" ? DEFAULT_PREFIX : path}/`, tls: secure === "s" };
}
