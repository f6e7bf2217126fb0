// The dashboards of deploy/grafana, as Grafana's own schema has them. `pnpm generate` writes them; a test compares.
import {
  BigValueColorMode,
  BigValueGraphMode,
  BigValueJustifyMode,
  BigValueTextMode,
  type Dashboard,
  DashboardCursorSync,
  type DataSourceRef,
  FieldColorModeId,
  type GraphFieldConfig,
  type Panel,
  PercentChangeColorMode,
  type RowPanel,
  ScaleDistribution,
  SortOrder,
  ThresholdsMode,
  TooltipDisplayMode,
  type VariableModel,
  VariableRefresh,
  VariableSort,
  VisibilityMode,
  VizOrientation,
} from "@grafana/schema";
import type { Options as StatOptions } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type { Options as TimeSeriesOptions } from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";
import type { PanelSpec, RowSpec } from "./panel.ts";
import { OVERVIEW, SERVERS } from "./panels.ts";

/** Grafana's grid has 24 columns. */
const COLUMNS = 24;
const STAT = { w: 4, h: 4 };
const CHART = { w: 8, h: 8 };
/** Newer releases of Grafana read it, and those from 10 on too. */
const SCHEMA_VERSION = 39;

const datasource: DataSourceRef = { type: "prometheus", uid: "${datasource}" };

/** The files of the dashboards, by name. */
export function dashboardFiles(): ReadonlyMap<string, string> {
  return new Map(
    [...dashboards()].map(([name, it]) => [name, `${JSON.stringify(it, undefined, 2)}\n`]),
  );
}

/** The dashboards, by the name of their file. */
export function dashboards(): ReadonlyMap<string, Dashboard> {
  const tag = variable("tag", 'label_values(idmint_ids_issued_total{job="$job"}, tag)');
  return new Map([
    ["idmint.json", dashboard("idmint", "idmint", OVERVIEW, [tag])],
    ["idmint-servers.json", dashboard("idmint-servers", "idmint servers", SERVERS, [])],
  ]);
}

/** Every query of a dashboard: of its panels, annotations and variables. */
export function queriesOf({ panels = [], annotations, templating }: Dashboard): readonly string[] {
  const targets = panels.flatMap((panel) => ("targets" in panel ? (panel.targets ?? []) : []));
  const marks = (annotations?.list ?? []).map(({ target }) => target as { expr?: unknown });
  const variables = (templating?.list ?? []).map(({ query }) => query as { query?: unknown });
  const texts = [...targets, ...marks].map(({ expr }) => expr);
  // label_values(metric, label)
  const listed = variables.map(({ query }) => /\((.*), \w+\)$/.exec(String(query))?.[1]);
  return [...texts, ...listed].filter((text) => typeof text === "string");
}

function dashboard(
  uid: string,
  title: string,
  rows: readonly RowSpec[],
  variables: readonly VariableModel[],
): Dashboard {
  return {
    uid,
    title,
    tags: ["idmint"],
    schemaVersion: SCHEMA_VERSION,
    editable: true,
    graphTooltip: DashboardCursorSync.Crosshair,
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    timezone: "browser",
    templating: {
      list: [
        { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" },
        { ...variable("job", "label_values(idmint_ready, job)"), multi: false, includeAll: false },
        variable("instance", 'label_values(idmint_ready{job="$job"}, instance)'),
        ...variables,
      ],
    },
    annotations: {
      list: [
        annotation(
          "Epoch changed",
          "orange",
          'max by (tag) (changes(idmint_epoch{job="$job"}[1m])) > 0',
        ),
        annotation(
          "Alert",
          "red",
          'max by (alertname) (ALERTS{alertname=~"Idmint.+", alertstate="firing"})',
        ),
      ],
    },
    links: [
      {
        title: "idmint",
        type: "dashboards",
        tags: ["idmint"],
        icon: "external link",
        tooltip: "",
        asDropdown: false,
        includeVars: true,
        keepTime: true,
        targetBlank: false,
      },
    ],
    panels: panelsOf(rows),
  };
}

function variable(name: string, query: string): VariableModel {
  return {
    name,
    type: "query",
    datasource,
    query: { query, refId: name },
    refresh: VariableRefresh.onTimeRangeChanged,
    sort: VariableSort.alphabeticalAsc,
    multi: true,
    includeAll: true,
    allValue: ".+",
    current: { text: "All", value: "$__all" },
  };
}

type Annotation = NonNullable<NonNullable<Dashboard["annotations"]>["list"]>[number];

function annotation(name: string, iconColor: string, expr: string): Annotation {
  const target = { refId: "A", expr };
  return { name, enable: true, iconColor, datasource, target };
}

/** From left to right and from top to bottom, each row below the one before. */
function panelsOf(rows: readonly RowSpec[]): (Panel | RowPanel)[] {
  const panels: (Panel | RowPanel)[] = [];
  let y = 0;
  for (const row of rows) {
    const gridPos = { x: 0, y: y++, w: COLUMNS, h: 1 };
    panels.push({
      id: panels.length + 1,
      type: "row",
      title: row.title,
      collapsed: false,
      panels: [],
      gridPos,
    });
    let x = 0;
    let height = 0;
    for (const panel of row.panels) {
      const { w, h } = panel.isStat === true ? STAT : CHART;
      if (x + w > COLUMNS) {
        y += height;
        x = 0;
        height = 0;
      }
      panels.push({ id: panels.length + 1, ...panelOf(panel), gridPos: { x, y, w, h } });
      x += w;
      height = Math.max(height, h);
    }
    y += height;
  }
  return panels;
}

function panelOf(panel: PanelSpec): Panel {
  const { title, about, unit, queries, isStat = false, isLog = false } = panel;
  return {
    type: isStat ? "stat" : "timeseries",
    title,
    description: about,
    datasource,
    targets: queries.map(({ expr, legend }, at) => ({
      refId: String(at + 1),
      datasource,
      expr,
      legendFormat: legend,
      instant: isStat,
      range: !isStat,
    })),
    fieldConfig: {
      defaults: {
        unit,
        ...(isLog ? {} : { min: 0 }),
        color: { mode: isStat ? FieldColorModeId.Thresholds : FieldColorModeId.PaletteClassic },
        thresholds: { mode: ThresholdsMode.Absolute, steps: stepsOf(panel) },
        ...(isStat ? {} : { custom: { ...linesOf(isLog) } }),
      },
      overrides: [],
    },
    options: isStat ? { ...STAT_OPTIONS } : { ...CHART_OPTIONS },
  };
}

function linesOf(isLog: boolean): GraphFieldConfig {
  const lines = { lineWidth: 1, fillOpacity: isLog ? 0 : 8, showPoints: VisibilityMode.Never };
  if (!isLog) return lines;
  return { ...lines, scaleDistribution: { type: ScaleDistribution.Log, log: 10 } };
}

function stepsOf({ redFrom, redBelow }: PanelSpec): { color: string; value: number | null }[] {
  if (redBelow !== undefined) {
    return [
      { color: "red", value: null },
      { color: "green", value: redBelow },
    ];
  }
  const red = redFrom === undefined ? [] : [{ color: "red", value: redFrom }];
  return [{ color: "green", value: null }, ...red];
}

const STAT_OPTIONS: StatOptions = {
  colorMode: BigValueColorMode.Value,
  graphMode: BigValueGraphMode.None,
  justifyMode: BigValueJustifyMode.Auto,
  orientation: VizOrientation.Auto,
  percentChangeColorMode: PercentChangeColorMode.Standard,
  reduceOptions: { calcs: ["lastNotNull"], values: false },
  showPercentChange: false,
  textMode: BigValueTextMode.Auto,
  wideLayout: true,
};

const CHART_OPTIONS: TimeSeriesOptions = {
  legend: {
    calcs: [],
    placement: "bottom",
    showLegend: true,
  },
  tooltip: { mode: TooltipDisplayMode.Multi, sort: SortOrder.Descending },
};
