import { type Option, option, optional } from "./option.ts";
import { flag, text } from "./types.ts";

/** Who may call. */
export interface AccessConfig {
  readonly allowAnonymous: boolean;
  readonly accessFile: string | undefined;
  readonly accessCommonNames: boolean;
}

/** The options about callers; a part of the table. */
export const ACCESS_OPTIONS: { readonly [K in keyof AccessConfig]: Option<AccessConfig[K]> } = {
  allowAnonymous: option(
    "allow_anonymous",
    flag,
    "false",
    "Let callers who show neither a token nor a known certificate do everything. Without it, a server that other machines can reach does not start before there are principals, and one on a loopback address is open until there are. Set it while callers get their tokens one by one.",
  ),
  accessFile: optional(
    "access.file",
    text("path"),
    "YAML file with principals, their rights, the names in their client certificates, and hashes of their tokens. It is read again every 2 s.",
  ),
  accessCommonNames: option(
    "access.common_names",
    flag,
    "false",
    "Take the common name (CN) of a client certificate for one of its names. Default: only its alternative names (SAN) count.",
  ),
};
