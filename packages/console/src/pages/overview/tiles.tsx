import type { JSX } from "preact";
import { StateBadge } from "../../parts/states.tsx";
import { type Tile, Tiles } from "../../parts/tiles.tsx";
import { durationText, numberText, shareText, shortText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import { serverOf } from "../nodes/nodes-state.ts";
import { alarmsOf, type Figures, type Fleet, nowOf, worstStore } from "./fleet-state.ts";

export function FleetTiles({
  figures,
  fleet,
}: {
  readonly figures: Figures;
  readonly fleet: Fleet;
}): JSX.Element {
  const { nodes } = figures;
  const alarms = alarmsOf(nodes).filter(({ alarm }) => alarm.lasting);
  const isCritical = alarms.some(({ alarm }) => alarm.severity === "ALARM_SEVERITY_CRITICAL");
  const store = worstStore(nodes);
  return (
    <Tiles
      tiles={[
        ...trafficTiles(fleet),
        latencyTile(nodes),
        serversTile(figures),
        {
          name: t("overview.store"),
          value: <StateBadge state={store?.state ?? ""} />,
          more: t(`backend.${store?.backend ?? ""}` as "backend.STORE_BACKEND_SQLITE"),
        },
        {
          name: t("overview.alarms"),
          value: numberText(alarms.length),
          tone: alarms.length === 0 ? undefined : isCritical ? "bad" : "warn",
        },
      ]}
    />
  );
}

function rateText(rate: number | undefined): string {
  return rate === undefined ? t("common.none") : shortText(rate);
}

function trafficTiles({ issued, calls, refused }: Fleet): readonly Tile[] {
  const [callRate, refusedRate] = [nowOf(calls), nowOf(refused)];
  const share = (refusedRate ?? 0) / Math.max(callRate ?? 0, Number.MIN_VALUE);
  return [
    {
      name: t("overview.rate"),
      value: rateText(nowOf(issued.lines[0]?.values ?? [])),
      more: t("overview.calls", { calls: rateText(callRate) }),
    },
    {
      name: t("overview.refused"),
      value: rateText(refusedRate),
      more: t("overview.refused_share", { share: shareText(Math.min(1, share)) }),
      tone: (refusedRate ?? 0) > 0 ? "warn" : undefined,
    },
  ];
}

/** Of the slowest server: percentiles of several cannot be joined. */
function latencyTile(nodes: Figures["nodes"]): Tile {
  const worst = (of: (node: Figures["nodes"][number]) => number | null | undefined): number =>
    Math.max(-1, ...nodes.map((node) => of(node) ?? -1));
  const p99 = worst(({ latencyP99Micros }) => latencyP99Micros);
  const p50 = worst(({ latencyP50Micros }) => latencyP50Micros);
  return {
    name: t("overview.p99"),
    value: p99 < 0 ? t("common.none") : durationText(p99 / 1_000),
    more: p50 < 0 ? t("overview.no_calls") : t("overview.p50", { time: durationText(p50 / 1_000) }),
  };
}

function serversTile({ nodes, silentNodes }: Figures): Tile {
  const silent = silentNodes.length;
  const servers = new Set(nodes.map(({ instance }) => serverOf(instance))).size;
  const processes = t("overview.processes", { count: numberText(nodes.length) });
  return {
    name: t("overview.servers"),
    value: numberText(servers),
    more:
      silent > 0
        ? t("overview.servers_silent", { count: numberText(silent) })
        : nodes.length > servers
          ? processes
          : t("overview.servers_all"),
    tone: silent === 0 ? undefined : "warn",
  };
}
