import type { Bar, Summary } from "./figure.ts";

/** A number with three digits that mean something, thousands apart. */
function number(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 100) return Math.round(value).toLocaleString("en-US");
  if (size === 0) return "0";
  return value.toPrecision(3).replace(/\.0+$/, "");
}

/** A bar as the table of bars writes it: `≥ 0.88 ×`. */
function barText({ wants, value, of }: Bar): string {
  return `${wants === "at least" ? "≥" : "≤"} ${number(value)}${of === "ratio" ? " ×" : ""}`;
}

/** What a summary says, in columns. */
export function columns(summary: Summary): readonly string[] {
  const { text, unit, ours, oursSpread, peer, peerValue, ratio, ratioSpread, bar } = summary;
  const range = ([least, most]: readonly [number, number]): string =>
    summary.rounds === 1 ? "" : ` (${number(least)} … ${number(most)})`;
  return [
    text,
    `${number(ours)} ${unit}${range(oursSpread)}`,
    peerValue === undefined
      ? ""
      : `${number(peerValue)} ${unit}${peer === undefined ? "" : `, ${peer}`}`,
    ratio === undefined || ratioSpread === undefined
      ? ""
      : `${number(ratio)} ×${range(ratioSpread)}`,
    bar === undefined ? "" : barText(bar),
    summary.verdict,
  ];
}

/** Heads of those columns. */
export const HEADS = ["figure", "idmint", "compared with", "ratio", "bar", "verdict"] as const;
