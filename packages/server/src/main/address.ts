import { createServer } from "node:net";
import { IdmintError } from "@idmint/core";
import { envOf, flagOf } from "../config/option.ts";
import type { Address } from "../config/types.ts";
import { listen } from "../tcp.ts";

export function hostPort({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The host of host:port, as `hostPort` writes it. */
export function hostOf(address: string): string {
  return address.replace(/:\d+$/, "").replaceAll(/^\[|\]$/g, "");
}

/** The idmint server that listens on an address already. */
export interface Taker {
  /** Where its store is; empty when it does not say. */
  readonly store: string;
}

/**
 * The error for an address that cannot be listened on. It names the option that chooses another one. `taker` is the
 * idmint server that has the address, if one does.
 */
export function addressError(
  error: unknown,
  key: string,
  address: Address,
  taker: Taker | undefined,
): IdmintError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown fault";
  const option = { key };
  const other = `choose another address with --${flagOf(option)} or ${envOf(option)}`;
  const description = `${hostPort(address)} ${reasonOf(code, taker)}, or ${other}`;
  return new IdmintError("INVALID_ARGUMENT", `${key}: ${description}`, {
    violations: [{ field: key, description }],
    cause: error,
  });
}

function reasonOf(code: string, taker: Taker | undefined): string {
  if (code !== "EADDRINUSE") return `cannot be listened on (${code}); correct it`;
  if (taker === undefined) return "is taken by another program; stop that";
  const its = taker.store === "" ? "" : ` that serves the store ${taker.store}`;
  return `is taken by an idmint server${its}; use it, stop it`;
}

/** Rejects when an address cannot be listened on now. */
export async function tryAddress({ host, port }: Address): Promise<void> {
  const server = createServer();
  await listen(server, { host, port, exclusive: true }, () => undefined);
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
}
