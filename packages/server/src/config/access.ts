import { isTagPattern, MAX_RIGHTS } from "@idmint/core/server";
import { type Option, option, optional } from "./option.ts";
import { flag, oneOf, type OptionType, text } from "./types.ts";

/** Who may call. */
export interface AccessConfig {
  readonly accessAnonymous: "none" | "issue" | "all" | undefined;
  readonly accessAnonymousTags: readonly string[];
  readonly accessFile: string | undefined;
  readonly accessCommonNames: boolean;
  readonly tinyidTokens: string | undefined;
}

/** Tags as rights name them. */
const tagPatterns: OptionType<readonly string[]> = {
  placeholder: "tags,…",
  accepts: `1 to ${MAX_RIGHTS} names of tags, beginnings of names followed by *, or * alone, separated by commas`,
  parse: (value) => {
    const patterns = value.split(",").map((each) => each.trim());
    return patterns.length <= MAX_RIGHTS && patterns.every(isTagPattern) ? patterns : undefined;
  },
};

/** The options about callers; a part of the table. */
export const ACCESS_OPTIONS: { readonly [K in keyof AccessConfig]: Option<AccessConfig[K]> } = {
  accessAnonymous: optional(
    "access.anonymous",
    oneOf("none", "issue", "all"),
    "What callers may do who show neither a token nor a known certificate: nothing, take ids of the tags in `access.anonymous_tags`, or everything with them. Default: everything on a loopback address until there are principals, and nothing elsewhere. A server that other machines can reach does not start without principals, unless this is `issue` or `all`.",
  ),
  accessAnonymousTags: option(
    "access.anonymous_tags",
    tagPatterns,
    "*",
    "Tags that `access.anonymous` is about: names, beginnings of names followed by `*`, or `*` for all.",
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
  tinyidTokens: optional(
    "tinyid.tokens",
    text("path"),
    "File with the tokens that Tinyid's clients send: lines of a token, a comma or a tab, and the name of a tag that it may take ids of, as Tinyid's table `tiny_id_token` has them. They count on Tinyid's paths alone (`http.tinyid`). The file is read again every 2 s.",
  ),
};
