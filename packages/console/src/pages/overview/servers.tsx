import type { JSX } from "preact";
import { Section } from "../../parts/page.tsx";
import { StateBadge } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { durationText, shortText } from "../../text/format.ts";
import { t, tOr } from "../../text/text.ts";
import { type Figures, type NodeFigures, loopOf, rateOf } from "./fleet-state.ts";

export function Servers({ figures }: { readonly figures: Figures }): JSX.Element {
  const rows = figures.nodes.toSorted(
    (a, b) => compare(a.zone, b.zone) || compare(a.instance, b.instance),
  );
  return (
    <Section title={t("overview.zones")}>
      <Table
        caption={t("overview.zones")}
        columns={columnsOf()}
        rows={rows}
        keyOf={({ nodeId }) => nodeId}
        empty={t("overview.none")}
      />
    </Section>
  );
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function columnsOf(): readonly Column<NodeFigures>[] {
  return [
    {
      title: t("overview.zone"),
      cell: ({ zone }) => (zone === "" ? t("overview.no_zone") : zone),
    },
    {
      title: t("overview.server"),
      isHead: true,
      cell: ({ instance }) => <span class="foreign">{instance}</span>,
    },
    {
      title: t("overview.state"),
      cell: ({ status }) => (
        <>
          <StateBadge state={status?.state ?? ""} />
          {(status?.stateReason ?? "") !== "" && <small class="soft">{status?.stateReason}</small>}
        </>
      ),
    },
    {
      title: t("overview.issued"),
      isNumber: true,
      cell: (node) => knownText(rateOf(node), shortText),
    },
    {
      title: t("overview.store_offset"),
      isNumber: true,
      cell: ({ storeOffsetMillis }) => knownText(storeOffsetMillis, durationText),
    },
    {
      title: t("overview.peers_offset"),
      isNumber: true,
      cell: ({ peersOffsetMillis }) => knownText(peersOffsetMillis, durationText),
    },
    {
      title: t("overview.loop"),
      isNumber: true,
      cell: (node) => knownText(loopOf(node), (micros) => durationText(micros / 1_000)),
    },
    { title: t("overview.version"), cell: ({ status }) => status?.version },
  ];
}

function knownText(value: number | null | undefined, text: (value: number) => string): string {
  return value === null || value === undefined ? t("common.none") : text(value);
}

/** Who did not tell, and why: what is not known is said, not left out. */
export function SilentServers({ figures }: { readonly figures: Figures }): JSX.Element | null {
  if (figures.silentNodes.length === 0) return null;
  return (
    <Section title={t("overview.silent")}>
      <p class="soft">{t("overview.silent_text")}</p>
      <Table
        caption={t("overview.silent")}
        columns={[
          {
            title: t("overview.server"),
            isHead: true,
            cell: ({ instance, nodeId }) => (
              <>
                <span class="foreign">{instance}</span>
                <small class="mono soft">{nodeId}</small>
              </>
            ),
          },
          {
            title: t("overview.zone"),
            cell: ({ zone }) => (zone === "" ? t("overview.no_zone") : zone),
          },
          {
            title: t("overview.silent_why"),
            cell: ({ reason, detail }) => (
              <>
                {tOr("silence", reason)}
                {detail !== "" && <small class="soft foreign">{detail}</small>}
              </>
            ),
          },
        ]}
        rows={figures.silentNodes}
        keyOf={({ nodeId }) => nodeId}
        empty=""
      />
    </Section>
  );
}
