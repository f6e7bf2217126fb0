import { createServer } from "node:net";
import { IdmintError } from "@idmint/core";
import { envOf, flagOf } from "../config/table.ts";
import type { Address } from "../config/types.ts";

export function hostPort({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Why an address cannot be listened on, and which option says otherwise. */
export function addressError(error: unknown, key: string, address: Address): IdmintError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown fault";
  const why =
    code === "EADDRINUSE" ? "is taken by another program" : `cannot be listened on (${code})`;
  const option = { key };
  const description = `${hostPort(address)} ${why}; stop that, or choose another with --${flagOf(option)} or ${envOf(option)}`;
  return new IdmintError("INVALID_ARGUMENT", `${key}: ${description}`, {
    violations: [{ field: key, description }],
    cause: error,
  });
}

/** Rejects when an address cannot be listened on now. */
export async function assertFree(address: Address, key: string): Promise<void> {
  if (address.port === 0) return;
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host: address.host, port: address.port, exclusive: true }, resolve);
    });
  } catch (error) {
    throw addressError(error, key, address);
  }
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
}
