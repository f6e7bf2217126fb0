import { backendOf, BACKENDS } from "../store/shared/backends.ts";
import { type Option, option, optional } from "./option.ts";
import { duration, integer, oneOf } from "./types.ts";

/** What a server writes down of who was given which ids. */
export interface LedgerConfig {
  /** Undefined: on where the store keeps one. */
  readonly ledger: "off" | "on" | undefined;
  readonly ledgerKeepMs: number;
  readonly ledgerMaxRows: number;
}

/** The options about the ledger; a part of the table. */
export const LEDGER_OPTIONS: { readonly [K in keyof LedgerConfig]: Option<LedgerConfig[K]> } = {
  ledger: optional(
    "ledger",
    oneOf("on", "off"),
    "Whether to write down which server and which client was given which ids of tags of kind segment, for `idmint id who`. Set it on all servers alike. Default: on, and off with a store in etcd, which keeps none.",
  ),
  ledgerKeepMs: option(
    "ledger.keep",
    duration("1h", "87600h"),
    "720h",
    "How long the store keeps rows of the ledger.",
  ),
  ledgerMaxRows: option(
    "ledger.max_rows",
    integer(1_000, 1_000_000_000),
    "1000000",
    "About how many rows of the ledger each database of the store keeps. The oldest go first.",
  ),
};

/** Whether a server writes a ledger. */
export function writesLedger({
  ledger,
  storeUrl,
}: LedgerConfig & { readonly storeUrl: string }): boolean {
  return ledger === undefined ? keepsLedger(storeUrl) : ledger === "on";
}

/** Whether a store can keep one. */
export function keepsLedger(storeUrl: string): boolean {
  return BACKENDS[backendOf(storeUrl)].keepsLedger;
}
