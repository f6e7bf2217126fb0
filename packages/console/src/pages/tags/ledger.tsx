import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { Loaded } from "../../parts/loaded.tsx";
import { Section } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { usePoll } from "../../state/polling.ts";
import { countText, numberText, timeText } from "../../text/format.ts";
import { t, tOr } from "../../text/text.ts";
import { countOf, type Entry, type Holder, holdersOf } from "./model/holders.ts";
import { Pager } from "../../parts/pager.tsx";
import { Id } from "./tags.tsx";

const EVERY_MS = 10_000;
const PAGE_SIZE = 50;
const WIDE_PAGE = 1_000;
/** Most rows of which holders are told. */
const MAX_PAGES = 5;

interface LedgerProps {
  readonly tag: string;
  readonly page: string;
}

/** Who was given which ids of a tag. */
export function Ledger({ tag, page }: LedgerProps): JSX.Element {
  return (
    <>
      <Holders tag={tag} />
      <Entries tag={tag} page={page} />
    </>
  );
}

interface Rows {
  readonly entries: readonly Entry[];
  readonly isPartial: boolean;
}

async function firstEntries(tag: string, signal: AbortSignal): Promise<Rows> {
  const entries: Entry[] = [];
  let pageToken = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const request = { tag, pageSize: WIDE_PAGE, pageToken };
    // Each page needs the token of the one before.
    const answer = await call("TagService", "listLedgerEntries", request, { signal });
    entries.push(...answer.entries);
    pageToken = answer.nextPageToken;
    if (pageToken === "") break;
  }
  return { entries, isPartial: pageToken !== "" };
}

function Holders({ tag }: { readonly tag: string }): JSX.Element {
  const poll = usePoll(`holders\n${tag}`, (signal) => firstEntries(tag, signal), {
    everyMs: EVERY_MS,
  });
  return (
    <Section title={t("ledger.holders")}>
      <p class="soft">{t("ledger.holders_text")}</p>
      <Loaded poll={poll}>
        {({ entries, isPartial }) => (
          <>
            {isPartial && (
              <p class="notice">{t("ledger.partial", { count: numberText(entries.length) })}</p>
            )}
            <Table
              caption={t("ledger.holders")}
              columns={holderColumns()}
              rows={holdersOf(entries)}
              keyOf={({ key }) => key}
              empty={t("ledger.no_holders")}
            />
          </>
        )}
      </Loaded>
    </Section>
  );
}

function holderColumns(): readonly Column<Holder>[] {
  return [
    { title: t("ledger.who"), isHead: true, cell: (holder) => <Who {...holder} /> },
    { title: t("ledger.segment"), cell: ({ entry }) => <Range entry={entry} /> },
    {
      title: t("ledger.count"),
      isNumber: true,
      cell: ({ entry }) => countText(countOf(entry)),
    },
    { title: t("ledger.epoch"), isNumber: true, cell: ({ entry }) => entry.epoch },
    { title: t("ledger.time"), cell: ({ entry }) => timeText(entry.time ?? "") },
  ];
}

function Who({ isClient, entry }: Holder): JSX.Element {
  const { instance, principal, server } = entry;
  if (!isClient) {
    return (
      <>
        <span class="foreign">{server}</span>
        <small class="soft">{t("ledger.server")}</small>
      </>
    );
  }
  return (
    <>
      <span class="foreign">{instance === "" ? t("ledger.unnamed") : instance}</span>
      <small class="soft foreign">
        {t("ledger.client", { server })}
        {principal === "" ? "" : `, ${t("ids.proved", { principal })}`}
      </small>
    </>
  );
}

function Range({ entry: { firstId, lastId } }: { readonly entry: Entry }): JSX.Element {
  return <Id text={`${firstId} … ${lastId}`} />;
}

function Entries({ tag, page }: LedgerProps): JSX.Element {
  const request = { tag, pageSize: PAGE_SIZE, pageToken: page };
  const poll = usePoll(
    JSON.stringify(request),
    (signal) => call("TagService", "listLedgerEntries", request, { signal }),
    { everyMs: EVERY_MS },
  );
  return (
    <Section title={t("ledger.entries")}>
      <Loaded poll={poll}>
        {({ entries, nextPageToken }) => (
          <>
            <Table
              caption={t("ledger.entries")}
              columns={entryColumns()}
              rows={entries}
              keyOf={({ nodeId, sequence, kind, version, firstId }) =>
                [nodeId, sequence, kind, version, firstId].join(" ")
              }
              empty={t("ledger.none")}
            />
            <Pager label={t("ledger.entries")} page={page} next={nextPageToken} />
          </>
        )}
      </Loaded>
    </Section>
  );
}

function entryColumns(): readonly Column<Entry>[] {
  return [
    { title: t("ledger.kind"), isHead: true, cell: ({ kind }) => tOr("ledger_kind", kind) },
    { title: t("ledger.segment"), cell: (entry) => <Range entry={entry} /> },
    {
      title: t("ledger.who"),
      cell: ({ instance, server, nodeId }) => (
        <span class="foreign">{instance === "" ? server || nodeId : instance}</span>
      ),
    },
    { title: t("ledger.epoch"), isNumber: true, cell: ({ epoch }) => epoch },
    { title: t("ledger.time"), cell: ({ time }) => timeText(time ?? "") },
  ];
}
