import type { JSX } from "preact";
import { Badge } from "../../parts/badge.tsx";
import { Section } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { timeText } from "../../text/format.ts";
import { t, tOr } from "../../text/text.ts";
import { alarmsOf, type Figures, type FleetAlarm } from "./fleet-state.ts";

export function Alarms({ figures }: { readonly figures: Figures }): JSX.Element {
  const alarms = alarmsOf(figures.nodes);
  return (
    <Section title={t("overview.alarms")}>
      {alarms.length === 0 ? (
        <p class="soft">{t("overview.no_alarms")}</p>
      ) : (
        <AlarmTable alarms={alarms} />
      )}
    </Section>
  );
}

function AlarmTable({ alarms }: { readonly alarms: readonly FleetAlarm[] }): JSX.Element {
  return (
    <Table
      caption={t("overview.alarms")}
      columns={columnsOf()}
      rows={alarms}
      keyOf={({ alarm }) => `${alarm.alarm} ${alarm.summary} ${alarm.lasting}`}
      empty=""
    />
  );
}

function columnsOf(): readonly Column<FleetAlarm>[] {
  return [
    {
      title: t("overview.alarm"),
      isHead: true,
      cell: ({ alarm }) => (
        <>
          <span class="foreign">{alarm.summary}</span>
          <small class="mono soft">{alarm.alarm}</small>
        </>
      ),
    },
    {
      title: t("overview.state"),
      cell: ({ alarm: { severity, lasting } }) => {
        const tone = severity === "ALARM_SEVERITY_CRITICAL" ? "bad" : "warn";
        const text = tOr("severity", severity);
        return (
          <Badge tone={lasting ? tone : "idle"}>
            {lasting ? text : `${text}, ${t("overview.alarm_over")}`}
          </Badge>
        );
      },
    },
    {
      title: t("overview.alarm_since"),
      cell: ({ alarm }) => timeText(alarm.startTime ?? ""),
    },
    {
      title: t("overview.alarm_where"),
      cell: ({ instances }) => <span class="foreign">{instances.join(", ")}</span>,
    },
  ];
}
