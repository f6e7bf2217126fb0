import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { language, theme, zone } from "../state/settings.ts";
import { clockText } from "../text/format.ts";
import { t } from "../text/text.ts";
import { type ChartData, sampled } from "./chart-data.ts";
import { Table } from "./table.tsx";

const HEIGHT = 190;
const MOST_ROWS = 15;

interface ChartProps {
  readonly title: string;
  readonly data: ChartData;
  readonly format: (value: number) => string;
}

/** Lines over time; whoever cannot see them has the same as a table. */
export function Chart({ title, data, format }: ChartProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const shape = [...data.lines.map(({ label }) => label), theme.value.value].join("\n");
  const texts = `${language.value.value} ${zone.value.value}`;
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsOf(element, data, format), columnsOf(data), element);
    };
    draw();
    const resized = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    resized.observe(element);
    // With the theme "system", the system decides.
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      scheme.removeEventListener("change", draw);
      resized.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape, texts]);
  useEffect(() => {
    plot.current?.setData(columnsOf(data));
  }, [data]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={place} class="chart-plot" aria-hidden="true" />
      <details>
        <summary>{t("common.chart_table")}</summary>
        <Table
          caption={title}
          columns={[
            {
              title: t("common.chart_time"),
              isHead: true,
              cell: ({ second }) => clockText(second * 1_000),
            },
            ...data.lines.map(({ label }, at) => ({
              title: label,
              isNumber: true,
              cell: ({ values }: { readonly values: readonly (number | null)[] }) =>
                textOf(values[at], format),
            })),
          ]}
          rows={sampled(data, MOST_ROWS)}
          keyOf={({ second }) => String(second)}
          empty={t("common.none")}
        />
      </details>
    </figure>
  );
}

function textOf(value: number | null | undefined, format: ChartProps["format"]): string {
  return value === null || value === undefined ? t("common.none") : format(value);
}

function columnsOf({ seconds, lines }: ChartData): uPlot.AlignedData {
  return [[...seconds], ...lines.map(({ values }) => [...values])];
}

function optionsOf(
  element: HTMLElement,
  { lines }: ChartData,
  format: ChartProps["format"],
): uPlot.Options {
  const colour = colourReader(element);
  const axis = { stroke: colour("--ink-soft"), font: "11px system-ui, sans-serif" };
  const grid = { stroke: colour("--line"), width: 1 };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 28, 0, 0],
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(most, 1) * 1.1] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        ticks: grid,
        space: 90,
        values: (_, splits) => splits.map((second) => clockText(second * 1_000)),
      },
      {
        ...axis,
        grid,
        ticks: { show: false },
        size: 64,
        values: (_, splits) => splits.map(format),
      },
    ],
    series: [
      {
        label: t("common.chart_time"),
        value: (_, second) => (second === null ? t("common.none") : clockText(second * 1_000)),
      },
      ...lines.map(({ label }, at) => ({
        label,
        stroke: colour(`--chart-${(at % 6) + 1}`),
        width: 1.5,
        // Lines differ by more than their colour.
        dash: DASHES[at % DASHES.length] ?? [],
        points: { show: false },
        value: (_: uPlot, value: number | null) => textOf(value, format),
      })),
    ],
  };
}

const DASHES: readonly number[][] = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

/** The colour that a variable has in the present theme: a canvas understands neither variables nor `light-dark()`. */
function colourReader(element: HTMLElement): (variable: string) => string {
  return (variable) => {
    const probe = document.createElement("span");
    probe.style.color = `var(${variable})`;
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
}
