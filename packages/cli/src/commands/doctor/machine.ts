import { createPrivateKey, X509Certificate } from "node:crypto";
import { accessSync, constants, readFileSync, type Stats, statSync } from "node:fs";
import path from "node:path";
import type { Config, ConfigReading, ConfigSources } from "@idmint/server";
import { plain } from "../../process/plain.ts";
import { expiryFinding } from "./certificate.ts";
import { allWellOr, type Check, fail, type Finding, ok, warn } from "./checks.ts";

/** What only the machine of a server sees: its configuration, its files and its limits. */
export function machineChecks(reading: ConfigReading, sources: ConfigSources): readonly Check[] {
  const late = "the disk does not answer: look at it, and at network file systems";
  const { config } = reading;
  const checks: Check[] = [
    { name: "configuration", late, look: async () => configFindings(reading) },
    { name: "secrets", late, look: async () => secretFindings(reading, sources) },
  ];
  if (config === undefined) return checks;
  return [
    ...checks,
    { name: "files", late, look: async () => fileFindings(config) },
    { name: "open files", late, look: async () => limitFindings(config) },
  ];
}

function configFindings({ violations, options }: ConfigReading): readonly Finding[] {
  const set = options.filter(({ source }) => source !== "default").length;
  return allWellOr(
    violations.map(({ field, description }) =>
      fail(plain(`${field} ${description}`), "idmint config check shows where each option is set"),
    ),
    `${set} options are set`,
  );
}

/** Files that hold secrets of the configuration: the YAML file, if some stand in it, and those that variables name. */
function secretFindings(
  { options }: ConfigReading,
  { env = {} }: ConfigSources,
): readonly Finding[] {
  const files = options
    .filter(({ shown }) => shown === "(secret)")
    .map(({ source }) => {
      if (source.endsWith("_FILE")) return env[source];
      return source.startsWith("/") || source.includes(": ") ? source.split(": ")[0] : undefined;
    })
    .filter((file) => file !== undefined);
  const findings = [...new Set(files)].map((file) => privateFinding(file, "secrets"));
  return allWellOr(
    findings,
    `${new Set(files).size} files with secrets, only their owner reads them`,
  );
}

function fileFindings(config: Config): readonly Finding[] {
  const { tlsCertFile, tlsKeyFile, tlsClientCaFile, tlsPeerCaFile, storeTlsKeyFile } = config;
  const { snowflakeCacheFile, unguessableKeys, storeUrl } = config;
  const keys = [tlsKeyFile, storeTlsKeyFile, ...unguessableKeys.values()].filter(
    (file) => file !== undefined,
  );
  const certificates = [
    ["tls.cert_file", tlsCertFile],
    ["tls.client_ca_file", tlsClientCaFile],
    ["tls.peer_ca_file", tlsPeerCaFile],
    ["store.tls_ca_file", config.storeTlsCaFile],
    ["store.tls_cert_file", config.storeTlsCertFile],
  ] as const;
  const database = storeUrl.startsWith("sqlite:") ? storeUrl.slice("sqlite:".length) : undefined;
  return allWellOr(
    [
      ...keys.map((file) => privateFinding(file, "a key")),
      ...certificates.map(([option, file]) => certificateFinding(option, file)),
      pairFinding(tlsCertFile, tlsKeyFile),
      writableFinding("snowflake.cache_file", snowflakeCacheFile),
      writableFinding("store.url", database),
      database === undefined ? undefined : ownedFinding(database),
    ],
    "permissions, certificates and keys are fine",
  );
}

function statOf(file: string): Stats | undefined {
  try {
    return statSync(file);
  } catch {
    return undefined;
  }
}

/** A file that nobody but its owner may read. */
function privateFinding(file: string, what: string): Finding | undefined {
  const stats = statOf(file);
  if (stats === undefined || !canUse(file, constants.R_OK)) {
    return fail(`${file} cannot be read`, "correct the path, or let the server's user read it");
  }
  if ((stats.mode & 0o077) === 0) return undefined;
  const mode = (stats.mode & 0o777).toString(8);
  return fail(`${file} holds ${what} and others may use it (mode ${mode})`, `chmod 600 ${file}`);
}

function certificateFinding(option: string, file: string | undefined): Finding | undefined {
  if (file === undefined) return undefined;
  try {
    const what = `the certificate of ${option}`;
    return expiryFinding(new X509Certificate(readFileSync(file)), Date.now(), what);
  } catch (error) {
    const why = error instanceof Error && "code" in error ? String(error.code) : "no PEM";
    const fix = "correct the path, or let the server's user read it";
    return fail(`${option} names ${file}, which holds no certificate (${why})`, fix);
  }
}

function pairFinding(
  certFile: string | undefined,
  keyFile: string | undefined,
): Finding | undefined {
  if (certFile === undefined || keyFile === undefined) return undefined;
  try {
    const certificate = new X509Certificate(readFileSync(certFile));
    if (certificate.checkPrivateKey(createPrivateKey(readFileSync(keyFile)))) return undefined;
    return fail(
      `the key in ${keyFile} does not belong to the certificate in ${certFile}`,
      "put both of the same renewal there",
    );
  } catch {
    // Which of both is bad is told by its own line.
    return undefined;
  }
}

/** A file that the server makes and writes, in a folder that it has to be able to write. */
function writableFinding(option: string, file: string | undefined): Finding | undefined {
  if (file === undefined) return undefined;
  const there = statOf(file) === undefined ? path.dirname(path.resolve(file)) : file;
  if (canUse(there, constants.W_OK)) return undefined;
  return fail(`${there} cannot be written (${option})`, "give it to the server's user");
}

function ownedFinding(file: string): Finding | undefined {
  const stats = statOf(file);
  if (stats === undefined || (stats.mode & 0o022) === 0) return undefined;
  const mode = (stats.mode & 0o777).toString(8);
  return fail(`others may write the store ${file} (mode ${mode})`, `chmod go-w ${file}`);
}

function canUse(file: string, mode: number): boolean {
  try {
    accessSync(file, mode);
    return true;
  } catch {
    return false;
  }
}

/** Beside callers: listeners, the log, files of the store, other servers. */
const OTHER_FILES = 128;

/** Node raises the soft limit to the hard one when it starts, so this process has what a server started here would have. */
function limitFindings(config: Config): readonly Finding[] {
  const limit = openFilesLimit();
  if (limit === undefined) return [warn("this system does not tell", "look at ulimit -n yourself")];
  const databases = 1 + config.storeMoreUrls.size + config.ticketUrls.size;
  const need = config.limitConnections + databases * config.storePoolSize + OTHER_FILES;
  if (limit >= need) return [ok(`${limit} allowed, ${need} needed at most`)];
  return [
    fail(
      `${limit} are allowed, and limits.connections of ${config.limitConnections} needs ${need}`,
      `set LimitNOFILE=${need} in the unit of systemd (ulimit -n ${need} in a shell), or lower limits.connections`,
    ),
  ];
}

function openFilesLimit(): number | undefined {
  try {
    const [, soft] =
      /^Max open files +(\d+|unlimited)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(soft);
  } catch {
    return undefined;
  }
}
