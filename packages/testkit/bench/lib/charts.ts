import { parse, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import type { Summary } from "./figure.ts";

/** A picture for the document. */
export interface Chart {
  /** File name without its ending. */
  readonly name: string;
  readonly title: string;
  readonly spec: TopLevelSpec;
}

const FONT = "system-ui, sans-serif";
const COLOURS = { idmint: "#1668b8", peer: "#b8bec6" } as const;

/** Charts of whatever was measured. */
export function chartsOf(summaries: readonly Summary[]): readonly Chart[] {
  const calls = summaries.filter(({ figure }) =>
    /^generate-id\..*\.(?:calls|stock|go)$/.test(figure),
  );
  const npm = summaries.filter(({ figure }) => /^sdk-npm\..*(?<!\.string)$/.test(figure));
  const warm = summaries.filter(({ figure }) => figure.startsWith("sdk-warm."));
  return [
    ...(calls.length === 0 ? [] : [callsChart(calls)]),
    ...(warm.length === 0 ? [] : [warmChart(warm)]),
    ...(npm.length === 0 ? [] : [npmChart(npm)]),
  ];
}

function callsChart(summaries: readonly Summary[]): Chart {
  const values = summaries.flatMap(({ figure, ours, peer = "", peerValue = 0 }) => {
    const [, shape = "", kind] = figure.split(".");
    const floor = { shape: shape.replace("x", " × "), server: peer, value: peerValue };
    return kind === "calls" ? [{ ...floor, server: "idmint", value: ours }, floor] : [floor];
  });
  const title = "One id a call, calls a second by connections × streams";
  return {
    name: "generate-id",
    title,
    spec: {
      ...base(title, values),
      mark: "bar",
      encoding: {
        y: { field: "shape", type: "nominal", title: null, sort: null },
        yOffset: { field: "server", sort: null },
        x: { field: "value", type: "quantitative", title: "calls/s" },
        color: {
          field: "server",
          type: "nominal",
          title: null,
          sort: null,
          scale: { range: [COLOURS.idmint, "#7d8794", COLOURS.peer, "#5aa6a0"] },
        },
      },
    },
  };
}

function warmChart(summaries: readonly Summary[]): Chart {
  const values = summaries.flatMap(({ text, ours, peer, peerValue }) => [
    { call: text, who: "idmint", value: ours },
    ...(peer === undefined || peerValue === undefined
      ? []
      : [{ call: text, who: "the least it can cost", value: peerValue }]),
  ]);
  const title = "An id from the SDK's memory, nanoseconds";
  return {
    name: "sdk-warm",
    title,
    spec: {
      ...base(title, values),
      mark: "bar",
      encoding: {
        y: { field: "call", type: "nominal", title: null, sort: null },
        yOffset: { field: "who", sort: null },
        x: { field: "value", type: "quantitative", title: "ns an id" },
        color: {
          field: "who",
          type: "nominal",
          title: null,
          sort: null,
          scale: { range: [COLOURS.idmint, COLOURS.peer] },
        },
      },
    },
  };
}

function npmChart(summaries: readonly Summary[]): Chart {
  const peers = summaries.map(({ text, ours }) => ({
    generator: text,
    value: ours,
    who: "npm",
  }));
  const idmint = summaries.flatMap(({ peerValue }) => (peerValue === undefined ? [] : [peerValue]));
  const values = [{ generator: "idmint nextSync", value: idmint[0] ?? 0, who: "idmint" }, ...peers];
  const title = "npm's id generators, nanoseconds an id (logarithmic)";
  return {
    name: "sdk-npm",
    title,
    spec: {
      ...base(title, values),
      mark: "bar",
      encoding: {
        y: { field: "generator", type: "nominal", title: null, sort: "x" },
        x: {
          field: "value",
          type: "quantitative",
          title: "ns an id",
          scale: { type: "log", domainMin: 1 },
        },
        x2: { datum: 1 },
        color: {
          field: "who",
          type: "nominal",
          legend: null,
          scale: { domain: ["idmint", "npm"], range: [COLOURS.idmint, COLOURS.peer] },
        },
      },
    },
  };
}

function base(
  title: string,
  values: object[],
): Pick<TopLevelSpec, "$schema"> & {
  title: string;
  width: number;
  background: string;
  data: { values: object[] };
  config: object;
} {
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    title,
    width: 560,
    background: "white",
    data: { values },
    config: { font: FONT },
  };
}

/** The chart as SVG, without a canvas. */
export async function svgOf({ spec }: Chart): Promise<string> {
  const view = new View(parse(compile(spec).spec), { renderer: "none" });
  try {
    return await view.toSVG();
  } finally {
    view.finalize();
  }
}
