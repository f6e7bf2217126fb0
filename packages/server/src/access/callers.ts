import { type IdmintError, invalidField } from "@idmint/core";
import type { LeaseFile } from "@idmint/core/server";
import { watchAccessFile } from "./file.ts";
import { authoriseBy } from "../api/authorise.ts";
import type { Authorise } from "../api/method.ts";
import { servesHttpCalls } from "../config/http.ts";
import type { Config } from "../config/table.ts";
import { type Address, isLoopback } from "../config/types.ts";
import { Access, type AccessPorts } from "../service/access/access.ts";
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
  },
): AccessParts {
  const { allowAnonymous, nodeMaxOffline, pollIntervalMs: intervalMs } = config;
  const anonymous = allowAnonymous
    ? "always"
    : reachable(config) === undefined
      ? "at-first"
      : "never";
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

/**
 * Reads who may call, and follows it. A server that other machines can reach begins only when it knows somebody, or is told to
 * let in everybody.
 */
export async function followCallers(config: Config, access: Access, emit: Emit): Promise<void> {
  const { allowAnonymous, accessFile: path } = config;
  if (path !== undefined) {
    const onBad = (error: IdmintError): void => emit({ type: "access-file-refused", path, error });
    const file = await watchAccessFile(path, (contents) => access.takeFile(contents), onBad);
    access.onStop(() => file.close());
    access.takeFile(file.contents);
  }
  await access.start();
  const found = reachable(config);
  if (allowAnonymous || found === undefined || access.principals !== "none") return;
  const { field, host, port } = found;
  throw invalidField(
    field,
    `${host}:${port} can be reached from other machines, and no principal is configured: make the first token with idmint token create --store, name an access.file, or --allow-anonymous to let in everybody`,
  );
}

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
