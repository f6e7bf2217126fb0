import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { Badge } from "../../parts/badge.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { PageView } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { usePoll } from "../../state/polling.ts";
import { hrefOf } from "../../state/route-state.ts";
import { countText, timeText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import type { PageProps } from "../page.ts";
import { Details } from "./details.tsx";
import type { AuditEvent, Events } from "./event.ts";
import { FilterForm } from "./filter-form.tsx";
import { commandOf, filtersOf, requestOf } from "./filters.ts";
import "./audit.css";

/** The newest page follows what happens; an older one hardly changes. */
const NEWEST_MS = 5_000;
const OLDER_MS = 60_000;

/** The audit trail. The URL has the conditions, the page and the event whose details are open. */
export function Audit({ query }: PageProps): JSX.Element {
  const { filters, unread } = filtersOf(query);
  const request = requestOf(filters);
  const everyMs = filters.page === "" ? NEWEST_MS : OLDER_MS;
  const events = usePoll(
    `audit ${JSON.stringify(request)}`,
    (signal) => call("AuditService", "listAuditEvents", request, { signal }),
    { everyMs },
  );
  return (
    <PageView title={t("audit.title")}>
      <p>{t("audit.about")}</p>
      <FilterForm filters={filters} />
      {unread.length > 0 && (
        <p class="stale" role="status">
          {t("audit.unread", { names: unread.join(", ") })}
        </p>
      )}
      <Loaded poll={events}>
        {(data) => (
          <>
            <EventTable events={data} open={query["event"]} />
            <Paging query={query} next={data.nextPageToken} />
          </>
        )}
      </Loaded>
      <CliLine line={commandOf(filters)} />
    </PageView>
  );
}

function EventTable({
  events: { events, nextPageToken },
  open,
}: {
  readonly events: Events;
  readonly open: string | undefined;
}): JSX.Element {
  return (
    <Table
      caption={t("audit.caption")}
      columns={[...columns(), details(open)]}
      rows={events}
      // A change of a store in several databases has an event of the same name in each.
      keyOf={({ eventId, resource }) => `${eventId} ${resource}`}
      empty={t(nextPageToken === "" ? "audit.empty" : "audit.empty.more")}
    />
  );
}

function columns(): readonly Column<AuditEvent>[] {
  return [
    { title: t("audit.time"), cell: ({ time }) => timeText(time ?? ""), isHead: true },
    {
      title: t("audit.who"),
      cell: ({ principal }) =>
        principal === "" ? <i>{t("audit.anonymous")}</i> : <bdi>{principal}</bdi>,
    },
    {
      title: t("audit.what"),
      cell: ({ method, resource }) => (
        <>
          {shortMethod(method)} <Resource name={resource} />
        </>
      ),
    },
    { title: t("audit.ended"), cell: (event) => <Outcome event={event} /> },
  ];
}

function details(open: string | undefined): Column<AuditEvent> {
  return {
    title: t("audit.details"),
    cell: (event) => <Details event={event} isOpen={event.eventId === open} />,
  };
}

function Outcome({
  event: { outcome, omittedCount },
}: {
  readonly event: AuditEvent;
}): JSX.Element {
  return (
    <>
      <Badge tone={outcome === "OK" ? "good" : "warn"}>{outcome}</Badge>
      {omittedCount !== "0" && (
        <p class="field-help">{t("audit.omitted", { count: countText(omittedCount) })}</p>
      )}
    </>
  );
}

/** What an event is about; a tag has a page. */
function Resource({ name }: { readonly name: string }): JSX.Element {
  const tag = name.startsWith("tag/") ? name.slice("tag/".length) : "";
  const text = <bdi>{name}</bdi>;
  return tag === "" ? text : <a href={hrefOf("tags/:tag", { tag })}>{text}</a>;
}

/** /idmint.v1.TagService/PauseTag is PauseTag; a command is itself. */
function shortMethod(method: string): string {
  return method.startsWith("/") ? (method.split("/").at(-1) ?? method) : method;
}

function Paging({
  query,
  next,
}: {
  readonly query: Readonly<Record<string, string>>;
  readonly next: string;
}): JSX.Element {
  const to = (page: string): string => hrefOf("audit", {}, { ...query, event: "", page });
  return (
    <nav class="audit-paging" aria-label={t("audit.caption")}>
      {(query["page"] ?? "") !== "" && (
        <a class="button" href={to("")}>
          {t("audit.newest")}
        </a>
      )}
      {next !== "" && (
        <a class="button" href={to(next)}>
          {t("audit.older")}
        </a>
      )}
    </nav>
  );
}
