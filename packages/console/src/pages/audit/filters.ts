import { cliLine } from "../../text/cli.ts";

/** How an event ended, as it is chosen: all, what was changed, what was refused, or one reason. */
export const OUTCOMES = ["", "change", "refusal", "PERMISSION_DENIED", "UNAUTHENTICATED"] as const;

type Outcome = (typeof OUTCOMES)[number];

/** Which events are listed, as the URL says it. Empty: no condition. */
export interface Filters {
  /** Times in UTC, as in RFC 3339, so that a link means the same everywhere. */
  readonly since: string;
  readonly until: string;
  readonly principal: string;
  /** As it is typed: the name of a tag, or a resource such as token/0123456789abcdef. */
  readonly about: string;
  readonly outcome: Outcome;
  /** The page token of the server. */
  readonly page: string;
}

const PAGE_SIZE = 50;

const KIND_WORDS: Readonly<Record<string, string>> = {
  AUDIT_KIND_CHANGE: "change",
  AUDIT_KIND_REFUSAL: "refusal",
};

/** What is no tag and has a name of its own in the trail. */
const WHOLE: readonly string[] = ["issuing", "store"];

/** Reads a query. What it cannot mean is no condition, and `unread` names it. */
export function filtersOf(query: Readonly<Record<string, string>>): {
  readonly filters: Filters;
  readonly unread: readonly string[];
} {
  const textOf = (name: string): string => (Object.hasOwn(query, name) ? (query[name] ?? "") : "");
  const outcome = OUTCOMES.find((one) => one === textOf("outcome"));
  const since = instantOf(textOf("since"));
  const until = instantOf(textOf("until"));
  const read = { outcome, since, until };
  const unread = Object.entries(read).flatMap(([name, one]) => (one === undefined ? [name] : []));
  const filters = {
    since: since ?? "",
    until: until ?? "",
    principal: textOf("principal"),
    about: textOf("about"),
    outcome: outcome ?? "",
    page: textOf("page"),
  };
  return { filters, unread };
}

/** The same time as RFC 3339 in UTC; undefined: it is none. */
function instantOf(text: string): string | undefined {
  if (text === "") return "";
  const time = new Date(text);
  return /^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(time.getTime())
    ? time.toISOString()
    : undefined;
}

/** What the trail calls it: a name alone is a tag's. */
export function resourceOf(about: string): string {
  const text = about.trim();
  return text === "" || text.includes("/") || WHOLE.includes(text) ? text : `tag/${text}`;
}

/** The request of ListAuditEvents. */
export function requestOf(filters: Filters): {
  readonly pageSize: number;
  readonly pageToken: string;
  readonly kind: string;
  readonly outcome: string;
  readonly principal: string;
  readonly resource: string;
  readonly startTime?: string;
  readonly endTime?: string;
} {
  const { since, until, principal, about, outcome, page } = filters;
  const isKind = outcome === "change" || outcome === "refusal";
  // All that has a reason is a refusal: so the server need not read the rest.
  const kind = outcome === "" ? "UNSPECIFIED" : outcome === "change" ? "CHANGE" : "REFUSAL";
  return {
    pageSize: PAGE_SIZE,
    pageToken: page,
    kind: `AUDIT_KIND_${kind}`,
    outcome: isKind ? "" : outcome,
    principal: principal.trim(),
    resource: resourceOf(about),
    ...(since === "" ? {} : { startTime: since }),
    ...(until === "" ? {} : { endTime: until }),
  };
}

/** The command that lists the same. */
export function commandOf(filters: Filters): string {
  const { kind, outcome, principal, resource } = requestOf(filters);
  return cliLine(["audit", "list"], {
    kind: KIND_WORDS[kind],
    outcome,
    principal,
    resource,
    since: filters.since,
    until: filters.until,
  });
}
