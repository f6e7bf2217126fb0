// Values for the chart, besides its examples.
import { readFileSync } from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import type { Option } from "../../../server/src/config/option.ts";
import { OPTIONS } from "../../../server/src/config/table.ts";
import { CHART } from "../../src/deploy/helm.ts";

/** The code blocks of a language in a chapter of the chart's page. */
export function blocksOf(chapter: string, language: string): readonly string[] {
  const text = readFileSync(path.join(CHART, "../../../docs/deploy/helm.md"), "utf8");
  const part = text.split(/^## /m).find((each) => each.startsWith(`${chapter}\n`)) ?? "";
  const blocks = [...part.matchAll(/^```(\w+)(?: fragment=\w+)?\n([^]*?)^```$/gm)];
  return blocks.flatMap(([, its, code = ""]) => (its === language ? [code] : []));
}

/** The values that docs/console.md adds. */
function consoleValues(): string {
  const page = readFileSync(path.join(CHART, "../../../docs/console.md"), "utf8");
  const [, found] = /^```yaml\n(config:\n[^]*?)^```$/m.exec(page) ?? [];
  if (found === undefined) throw new Error("docs/console.md has no values");
  return found;
}

function read(text: string): object {
  return parse(text) as object;
}

/** The values that the page shows: those to install with, those in its table, and those that scale by a metric. */
function printed(): Readonly<Record<string, object>> {
  const [install = ""] = blocksOf("Install", "yaml");
  const [scaling = ""] = blocksOf("Autoscaling", "yaml");
  const page = readFileSync(path.join(CHART, "../../../docs/deploy/helm.md"), "utf8");
  const cells = [...page.matchAll(/^\| `(?:config|secrets|files)` \|.*\| `(.*)` \|$/gm)];
  const { config: consoleConfig } = read(consoleValues()) as { config: object };
  const [config, secrets, files] = cells.map(([, cell = ""]) => read(cell));
  const installed = read(install) as { secrets: object; files: object };
  const merged = {
    ...installed,
    ...config,
    secrets: { ...installed.secrets, ...(secrets as { secrets: object } | undefined)?.secrets },
    files: { ...installed.files, ...(files as { files: object } | undefined)?.files },
  };
  return {
    "page-install": installed,
    "page-table": merged,
    "page-scaling": { ...installed, ...read(scaling) },
    "page-console": { ...installed, config: consoleConfig, serviceMonitor: { enabled: true } },
  };
}

/** Values of options that have no default, or one that says nothing. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  "store.expect_id": "6d1f0a52-6f0c-4a7e-9d5e-0c3b8a1f2e47",
  "store.user": "idmint",
  "redis.sentinel_user": "idmint",
  allow_unsafe_store: "fsync",
  allow_unproved_store: false,
  // On a pod's address it wants TLS.
  "http.api": "off",
  "http.leaf": false,
  "http.tinyid": false,
  epoch_gap: "1000",
  "node.peers": "10.0.0.1:7600",
  insecure: false,
  "access.anonymous": "all",
  "access.anonymous_tags": "*",
  "access.common_names": true,
};
/** What the keys of the Secret `all` hold, where it matters. */
export const SECRETS: Readonly<Record<string, string>> = {
  "store.url": "etcds://etcd:2379/idmint",
  "redis.urls": "redis://redis:6379",
  "ticket.urls": "postgres://idmint@tickets/idmint",
  "alarm.webhook_url": "https://alarms.example/hook",
};
/** A file of options is none of the chart's. The others contradict options that are set. */
export const UNSET: readonly string[] = ["config", "ledger", "store.more_urls", "tinyid.tokens"];

/** Sets each option that the schema of the values knows, in a Secret where that is possible. */
function everyOption(): object {
  const schema = JSON.parse(readFileSync(path.join(CHART, "values.schema.json"), "utf8")) as {
    properties: Record<"config" | "files" | "secrets", Level>;
  };
  const all: Record<string, object> = {};
  const set = (map: string, [group = "", ...rest]: readonly string[], value: unknown): void => {
    const level = (all[map] ??= {}) as Record<string, unknown>;
    const name = rest.join(".");
    if (name === "") level[group] = value;
    else level[group] = { ...(level[group] as object | undefined), [name]: value };
  };
  for (const { key, default: byDefault } of Object.values<Option<unknown>>(OPTIONS)) {
    const words = key.split(".");
    const has = (map: "config" | "files" | "secrets"): boolean => {
      const top = schema.properties[map].properties[words[0] ?? ""];
      if (words.length === 1) return top !== undefined;
      const level = top?.properties === undefined ? top?.anyOf?.[1] : top;
      return level?.properties?.[words.slice(1).join(".")] !== undefined;
    };
    const ref = { name: "all", key };
    if (UNSET.includes(key)) continue;
    if (has("secrets")) set("secrets", words, ref);
    else if (has("files")) set("files", words, key === "unguessable.keys" ? { "7": ref } : ref);
    else if (has("config")) set("config", words, SAMPLES[key] ?? byDefault);
  }
  return { ...all, zones: [{ name: "a", dataCenter: 5 }], leaseCache: true };
}

interface Level {
  readonly properties: Readonly<
    Record<
      string,
      | { readonly properties?: Record<string, unknown>; readonly anyOf?: readonly Level[] }
      | undefined
    >
  >;
}

const plain = { insecure: true, store: { url: "postgres://idmint@db/idmint" } };
const secure = {
  cert_file: { name: "tls", key: "tls.crt" },
  key_file: { name: "tls", key: "tls.key" },
};
/** Values that must be refused, and a part of the reason. */
export const refusals: Readonly<Record<string, readonly [values: object, reason: RegExp]>> = {
  nothing: [{}, /no store: set config\.store\.url, or secrets\.store\.url/],
  "no-tls": [{ config: { store: plain.store } }, /no TLS: set files\.tls\.cert_file/],
  sqlite: [
    { config: { insecure: true, store: { url: "sqlite:/var/lib/idmint/idmint.db" } } },
    /SQLite is a file for servers on one host/,
  ],
  "one-sqlite": [
    { replicas: 1, config: { insecure: true, store: { url: "sqlite:./idmint.db" } } },
    /SQLite is a file for servers on one host/,
  ],
  twice: [
    { config: plain, secrets: { store: { url: { name: "s", key: "url" } } } },
    /store\.url is set in config and in secrets/,
  ],
  "zone-twice": [{ config: plain, zones: [{ name: "a" }, { name: "a" }] }, /the same name/],
  "unknown-value": [{ config: plain, replica: 2 }, /replica/],
  "unknown-option": [{ config: { ...plain, grpc: { adress: "x" } } }, /grpc/],
  "unknown-part": [{ config: { ...plain, limits: { tag: 5 } } }, /tag/],
  "password-in-plain": [
    { config: { ...plain, store: { ...plain.store, password: "hunter2" } } },
    /password/,
  ],
  "own-option": [{ config: { ...plain, node: { zone: "a" } } }, /zone/],
  "word-as-boolean": [{ config: { ...plain, ledger: { keep: true } } }, /ledger/],
  "too-large": [{ config: { ...plain, epoch_gap: 2 ** 60 } }, /epoch_gap/],
  "no-request": [
    { config: plain, autoscaling: { enabled: true }, resources: { requests: { cpu: null } } },
    /needs resources\.requests\.cpu/,
  ],
  "few-at-most": [
    { config: plain, autoscaling: { enabled: true, minReplicas: 5, maxReplicas: 2 } },
    /maxReplicas is below/,
  ],
  "metric-without-value": [
    { config: plain, autoscaling: { enabled: true, metric: { name: "idmint_waiters" } } },
    /needs autoscaling\.metric\.averageValue/,
  ],
};
/** Further values that must work. */
export const more: Readonly<Record<string, object>> = {
  ...printed(),
  "every-option": everyOption(),
  everything: {
    zones: [{ name: "a", dataCenter: 0 }],
    config: {
      ...plain,
      limits: { tags: 1_000_000 },
      ledger: "off",
      epoch_gap: "9000000000000000000",
    },
    image: { digest: `sha256:${"0".repeat(64)}`, pullSecrets: [{ name: "registry" }] },
    admin: { enabled: false },
    migration: { enabled: false },
    networkPolicy: { egress: [{ ports: [{ port: 5432 }] }] },
    podLabels: { team: "payments" },
    podAnnotations: { note: "x" },
    nodeSelector: { disk: "ssd" },
    tolerations: [{ key: "ids", operator: "Exists" }],
    priorityClassName: "high",
    serviceAccountName: "ids",
    drainDelaySeconds: 600,
    drainSeconds: 600,
  },
  "mutual-tls": {
    config: { store: plain.store },
    files: { tls: { ...secure, client_ca_file: { name: "tls", key: "ca.crt" } } },
  },
};
