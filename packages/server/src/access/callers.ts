import { type IdmintError, invalidField } from "@idmint/core";
import { type AccessFile, type LeaseFile, type Right, Rights } from "@idmint/core/server";
import { type FileKind, watchFile } from "./file.ts";
import { parseAccess } from "./parse.ts";
import { parseTinyidTokens } from "./tinyid-tokens.ts";
import { authoriseBy } from "../api/authorise.ts";
import type { Authorise } from "../api/method.ts";
import { servesHttpCalls } from "../config/http.ts";
import type { Config } from "../config/table.ts";
import { type Address, isLoopback } from "../config/types.ts";
import { Access, type AccessOptions, type AccessPorts } from "../service/access/access.ts";
import { TokenService } from "../service/access/tokens.ts";
import { AdminGate } from "../service/admin-gate.ts";
import type { Emit } from "../service/events.ts";

/** Who may, put together. */
export interface AccessParts {
  readonly access: Access;
  readonly tokens: TokenService;
  readonly authorise: Authorise;
}

export function createAccess(
  config: Config,
  {
    leaseFile,
    ...ports
  }: Omit<AccessPorts, "kept"> & {
    readonly storeTimeoutMs: number;
    readonly leaseFile: LeaseFile | undefined;
    readonly randomBytes: (count: number) => Uint8Array;
  },
): AccessParts {
  const { nodeMaxOffline, pollIntervalMs: intervalMs } = config;
  const anonymous = anonymousOf(config);
  const kept = leaseFile?.found?.callers;
  const access = new Access(
    { ...ports, kept },
    { intervalMs, maxOfflineMs: nodeMaxOffline.ms, anonymous },
  );
  const gate = new AdminGate(ports.timers, ports.storeTimeoutMs);
  const refresh = async (): Promise<void> => access.refresh();
  const tokens = new TokenService({ ...ports, gate, refresh });
  return { access, tokens, authorise: authoriseBy(access) };
}

/** What callers may do who show nothing. */
function anonymousOf(config: Config): AccessOptions["anonymous"] {
  const { accessAnonymous, accessAnonymousTags } = config;
  if (accessAnonymous === undefined) return reachable(config) === undefined ? "at-first" : "none";
  if (accessAnonymous === "none") return "none";
  const roles = accessAnonymous === "all" ? (["issue", "admin"] as const) : (["issue"] as const);
  return new Rights(
    roles.flatMap((role) => accessAnonymousTags.map((tags): Right => ({ role, tags }))),
  );
}

/**
 * Reads who may call, and follows it. A server that other machines can reach begins only when it knows somebody, or is told what
 * callers may do whom it does not know.
 */
export async function followCallers(config: Config, access: Access, emit: Emit): Promise<void> {
  const follow = async <T>(
    path: string | undefined,
    kind: FileKind<T>,
    onRead: (contents: T) => void,
  ): Promise<void> => {
    if (path === undefined) return;
    const onBad = (error: IdmintError): void => emit({ type: "access-file-refused", path, error });
    const file = await watchFile(kind, path, { onRead, onBad });
    access.onStop(() => file.close());
  };
  await follow(config.accessFile, ACCESS_FILE, (said) => access.takeFile(said));
  await follow(config.tinyidTokens, TINYID_TOKENS, (said) => access.takeTinyidTokens(said));
  await access.start();
  const { accessAnonymous = "none" } = config;
  const found = reachable(config);
  if (accessAnonymous !== "none" || found === undefined || access.principals !== "none") return;
  const { field, host, port } = found;
  throw invalidField(
    field,
    `${host}:${port} can be reached from other machines, and no principal is configured: make the first token with idmint token create --store, name an access.file, or say what everybody may do: --access-anonymous issue (take ids) or all`,
  );
}

const ACCESS_FILE: FileKind<AccessFile> = { field: "access.file", parse: parseAccess };
const TINYID_TOKENS = { field: "tinyid.tokens", parse: parseTinyidTokens };

/** An address of the API that other machines can reach, if there is one. */
function reachable(config: Config): (Address & { readonly field: string }) | undefined {
  const { grpcAddress, adminAddress, httpAddress } = config;
  const http = servesHttpCalls(config) && httpAddress !== "none" ? httpAddress : undefined;
  const addresses = [
    ["grpc.address", grpcAddress],
    ["admin.address", adminAddress],
    ["http.address", http],
  ] as const;
  for (const [field, address] of addresses) {
    if (address !== undefined && !isLoopback(address)) return { field, ...address };
  }
  return undefined;
}
