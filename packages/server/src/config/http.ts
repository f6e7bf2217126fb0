import { isIP } from "node:net";
import { type Option, option, optional } from "./option.ts";
import { type Address, addressOrNone, flag, isLoopback, oneOf, type OptionType } from "./types.ts";

/** What is served over HTTP, and to whom. */
export interface HttpConfig {
  readonly httpAddress: Address | "none";
  readonly httpApi: "on" | "off" | undefined;
  readonly httpAdmin: "on" | "off";
  readonly httpConsole: "on" | "off";
  readonly httpLeaf: boolean;
  readonly httpTinyid: boolean;
  readonly httpTls: "on" | "off";
  readonly httpHosts: readonly string[];
}

const MAX_HOSTS = 64;
const HOST_NAME = /^(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*)(?:\.[a-z0-9_-]+)*$/;

/** Names of hosts as callers write them, in lower case: exact ones, `*.` before a domain for all below it, `*` for any. */
const hostNames: OptionType<readonly string[]> = {
  placeholder: "name,…",
  accepts: `up to ${MAX_HOSTS} names of hosts without ports, separated by commas, such as ids.example.com, *.example.com for all names below it, or * for any name`,
  parse: (value) => {
    const names = value === "" ? [] : value.split(",").map((name) => name.trim().toLowerCase());
    const areGood = names.every(
      (name) => name === "*" || (HOST_NAME.test(name) && name.length <= 253 && isIP(name) === 0),
    );
    return areGood && names.length <= MAX_HOSTS ? names : undefined;
  },
};

/** The options about HTTP; a part of the table. */
export const HTTP_OPTIONS: { readonly [K in keyof HttpConfig]: Option<HttpConfig[K]> } = {
  httpAddress: option(
    "http.address",
    addressOrNone,
    "127.0.0.1:7601",
    "Where the server answers HTTP: /healthz, /readyz and /metrics, and the API (`http.api`); `none`: nowhere.",
  ),
  httpApi: optional(
    "http.api",
    oneOf("on", "off"),
    "Whether the API is served over HTTP too, to the same callers with the same rights and limits. Default: on if only this machine reaches `http.address`, or with `http.tls` or `insecure`; otherwise off, so that no token crosses a network in plain text.",
  ),
  httpAdmin: option(
    "http.admin",
    oneOf("on", "off"),
    "off",
    "Whether methods that need the role admin are served over HTTP although `admin.address` is set.",
  ),
  httpConsole: option(
    "http.console",
    oneOf("on", "off"),
    "on",
    "Whether the web console is served below /console/. It needs the API over HTTP (`http.api`).",
  ),
  httpLeaf: option(
    "http.leaf",
    flag,
    "false",
    "Answers Leaf's paths at `http.address`, for services that call Leaf: /api/segment/get/TAG, /api/snowflake/get/TAG and /decodeSnowflakeId.",
  ),
  httpTinyid: option(
    "http.tinyid",
    flag,
    "false",
    "Answers Tinyid's paths at `http.address`, for its clients: /tinyid/id/nextId, nextIdSimple, nextSegmentId and nextSegmentIdSimple.",
  ),
  httpTls: option(
    "http.tls",
    oneOf("on", "off"),
    "off",
    "Whether HTTP uses TLS, with the files of `tls.cert_file` and `tls.key_file`. With `tls.client_ca_file`, all but the probes then need a certificate of the caller.",
  ),
  httpHosts: option(
    "http.hosts",
    hostNames,
    "",
    "Names under which callers may reach HTTP, besides IP addresses, `localhost`, and the hosts of `http.address`, `grpc.address` and `node.advertise`. A request for another name is refused, since a web page elsewhere can give its own name this server's address. /healthz and /readyz are answered under every name.",
  ),
};

type Relevant = HttpConfig & { readonly insecure: boolean };

/** Whether HTTP may carry tokens: nobody on a network can read them, or the operator does not mind. */
export function isHttpSafe({ httpAddress, httpTls, insecure }: Relevant): boolean {
  return httpAddress === "none" || httpTls === "on" || insecure || isLoopback(httpAddress);
}

/** Whether the API is served over HTTP. */
export function servesHttpApi(config: Relevant): boolean {
  return config.httpAddress !== "none" && (config.httpApi ?? "on") === "on" && isHttpSafe(config);
}

/** Whether the console is served: its pages are of no use without the API. */
export function servesConsole(config: Relevant): boolean {
  return servesHttpApi(config) && config.httpConsole === "on";
}

/** Whether anything over HTTP issues ids or changes something. */
export function servesHttpCalls(config: Relevant): boolean {
  const { httpAddress, httpLeaf, httpTinyid } = config;
  return servesHttpApi(config) || (httpAddress !== "none" && (httpLeaf || httpTinyid));
}
