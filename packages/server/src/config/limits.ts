import type { Rates } from "@idmint/core/server";
import { type Option, option } from "./option.ts";
import { duration, integer, rates } from "./types.ts";

/** How much a server takes on. */
export interface LimitConfig {
  readonly limitCountAsList: number;
  readonly limitCountAsSegments: number;
  readonly limitWaiters: number;
  readonly limitCalls: number;
  readonly limitTags: number;
  readonly limitConnections: number;
  readonly limitConnectionAgeMs: number;
  readonly quotaCallerCalls: Rates;
  readonly quotaCallerIds: Rates;
  readonly quotaTagCalls: Rates;
  readonly quotaTagIds: Rates;
  readonly quotaAdminCalls: Rates;
  readonly quotaAdminTags: Rates;
  readonly quotaBurstMs: number;
}

/** The options about limits and quotas; a part of the table. */
export const LIMIT_OPTIONS: { readonly [K in keyof LimitConfig]: Option<LimitConfig[K]> } = {
  limitCountAsList: option(
    "limits.count_as_list",
    integer(1, 100_000),
    "10000",
    "Most ids that one call may request as a list.",
  ),
  limitCountAsSegments: option(
    "limits.count_as_segments",
    integer(1, 1_000_000_000),
    "10000000",
    "Most ids that one call may request as segments.",
  ),
  limitWaiters: option(
    "limits.waiters",
    integer(1, 1_000_000),
    "10000",
    "Most calls that may wait for one tag.",
  ),
  limitCalls: option(
    "limits.calls",
    integer(1, 1_000_000),
    "20000",
    "Most calls that may wait in this server, for all tags together. A caller that has many of them is refused from half of it on.",
  ),
  limitTags: option(
    "limits.tags",
    integer(1, 1_000_000),
    "100000",
    "Most tags with a buffer in memory. Beyond that, the least used tags are dropped, and their unused ids go back to the store.",
  ),
  limitConnections: option(
    "limits.connections",
    integer(1, 100_000),
    "10000",
    "Most connections that may be open at once, of gRPC and of HTTP each. Beyond that, HTTP answers probes only. A server takes fewer when its memory is too small for so many.",
  ),
  limitConnectionAgeMs: option(
    "limits.connection_age",
    duration("1s", "24h"),
    "30min",
    "How old a connection becomes, give or take a tenth. Then its client makes a new one, which a new server may get. Calls in flight have 30 s to end.",
  ),
  quotaCallerCalls: option(
    "quota.caller_calls",
    rates,
    "none",
    "Calls a second that each caller may make for ids, such as `1000`, and callers with a quota of their own, such as `1000,orders=50000,192.0.2.2=none`. A caller is a principal; without one it is an IPv4 address, or a network of IPv6 such as `2001:db8:0:1::/64`. Each server admits the quota divided by the number of live servers.",
  ),
  quotaCallerIds: option(
    "quota.caller_ids",
    rates,
    "none",
    "Ids a second that each caller may get, in the same form.",
  ),
  quotaTagCalls: option(
    "quota.tag_calls",
    rates,
    "none",
    "Calls a second that may be made for ids of each tag, and tags with a quota of their own, such as `1000,orders=50000`.",
  ),
  quotaTagIds: option(
    "quota.tag_ids",
    rates,
    "none",
    "Ids a second that may be issued of each tag, in the same form.",
  ),
  quotaAdminCalls: option(
    "quota.admin_calls",
    rates,
    "50",
    "Calls a second for which a principal needs the role admin, in the same form. Without a name it is for principals who administer some tags, and not for those with the role admin for `*`.",
  ),
  quotaAdminTags: option(
    "quota.admin_tags",
    rates,
    "20",
    "Tags a second that each such principal may make, in the same form.",
  ),
  quotaBurstMs: option(
    "quota.burst",
    duration("10ms", "1h"),
    "1s",
    "How much of a quota may be used at once after a quiet time: as much as it allows in this time.",
  ),
};
