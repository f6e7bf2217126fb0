// What a form would make, told as it is typed: what is wrong with it, its layout, how long it lives, and ids of it.
import { type FieldViolation, IdmintError, idsPerSecond } from "@idmint/core";
import { type Bits, comesFrom, type KindName, type Order, specOf } from "@idmint/core/kinds";
import {
  exampleTexts,
  firstIdOf,
  hidingViolations,
  horizonsOf,
  periodsOf,
  idCountsOf,
  type TagSettings,
  type TextFormat,
  textFormatOf,
} from "@idmint/core/server";
import { draftOf } from "./draft.ts";
import type { FormValues } from "./fields.ts";
import { nextCut, type OffsetAt } from "./next-cut.ts";
import { sampleText } from "./samples.ts";
import { settledKind } from "./settle.ts";
import type { Fault } from "./typed.ts";

/** Something that follows from the settings; its text is `preview.NAME`. */
export type PreviewFact =
  | { readonly name: string; readonly count: bigint }
  | { readonly name: string; readonly timeMs: number }
  | { readonly name: string; readonly text: string };

export interface Preview {
  readonly faults: ReadonlyMap<string, Fault>;
  /** In the words of the server, which would say the same. */
  readonly violations: readonly FieldViolation[];
  /** From the highest bit down; empty for ids that are counted. */
  readonly bits: readonly Bits[];
  readonly facts: readonly PreviewFact[];
  readonly samples: readonly string[];
  /** Why there are no samples although nothing is wrong; its text is `preview.NAME`. */
  readonly withoutSamples: "by_name" | "hidden" | undefined;
}

export interface PreviewPorts {
  readonly nowMs: number;
  readonly offsetAt: OffsetAt;
  /** Ids a second that somebody expects; undefined: nobody said. */
  readonly rate: number | undefined;
}

/** What only a key or a server knows is left out. */
export function previewOf(kind: KindName, values: FormValues, ports: PreviewPorts): Preview {
  const { nowMs, offsetAt } = ports;
  const draft = draftOf(kind, values);
  const { common, faults } = draft;
  const asked = common["ceiling"] as bigint | undefined;
  const name = values["name"] ?? "";
  const {
    settings: made,
    violations,
    ceiling,
  } = settledKind(draft.kind, { name, ceiling: asked, nowMs });
  const nothing = {
    faults,
    violations,
    bits: [],
    facts: [],
    samples: [],
    withoutSamples: undefined,
  };
  if (violations.length > 0 || faults.size > 0) return nothing;
  const order = (common["order"] ?? specOf({ kind }).orders[0]) as Order;
  const settings = writtenAs({ name, description: "", order, ceiling, kind: made }, common);
  const { unguessable: key } = settings;
  const wrong = key === undefined ? [] : hidingViolations("tag.unguessable", settings, key);
  const found = wrong.length > 0 ? { violations: wrong } : formatOf(settings, offsetAt);
  const facts = factsOf(settings, ports);
  const { composed, isOfNames } = specOf(made);
  const bits = composed?.bits(made) ?? [];
  if ("violations" in found) {
    return { ...nothing, bits, facts, violations: found.violations };
  }
  const { format } = found;
  const lengths = format === undefined ? [] : [lengthFact(format)];
  const samples = samplesOf(settings, nowMs, format);
  const withoutSamples = key !== undefined ? "hidden" : isOfNames(made) ? "by_name" : undefined;
  return { ...nothing, bits, facts: [...facts, ...lengths], samples, withoutSamples };
}

function writtenAs(
  settings: TagSettings,
  common: ReturnType<typeof draftOf>["common"],
): TagSettings {
  const template = common["format.template"] as string | undefined;
  const keyId = common["unguessable.key_id"] as number | undefined;
  const keyDigits = (common["unguessable.key_digits"] as number | undefined) ?? 1;
  return {
    ...settings,
    ...(template === undefined ? {} : { format: { template } }),
    ...(keyId === undefined ? {} : { unguessable: { keyId, keyDigits, keys: [] } }),
  };
}

function formatOf(
  settings: TagSettings,
  offsetAt: OffsetAt,
):
  | { readonly format: TextFormat | undefined }
  | { readonly violations: readonly FieldViolation[] } {
  try {
    return { format: textFormatOf(settings, offsetAt) };
  } catch (thrown) {
    if (thrown instanceof IdmintError && thrown.violations.length > 0) return thrown;
    throw thrown;
  }
}

function samplesOf(
  settings: TagSettings,
  nowMs: number,
  format: TextFormat | undefined,
): readonly string[] {
  const text = sampleText(settings.kind, nowMs);
  return text === undefined ? exampleTexts(settings, nowMs, format) : [text];
}

function factsOf(
  settings: TagSettings,
  { nowMs, offsetAt, rate }: PreviewPorts,
): readonly PreviewFact[] {
  const { kind } = settings;
  const facts: PreviewFact[] = [];
  const endMs = specOf(kind).timeEndMs(kind);
  if (endMs !== undefined) facts.push({ name: "life_end", timeMs: endMs });
  if (comesFrom(kind, "lease")) {
    const { layout } = kind;
    if (layout.dataCenterBits > 0) {
      facts.push({ name: "data_centers", count: 2n ** BigInt(layout.dataCenterBits) });
    }
    facts.push(
      {
        name: layout.dataCenterBits > 0 ? "workers_each" : "workers",
        count: 2n ** BigInt(layout.workerBits),
      },
      { name: "ids_per_second", count: BigInt(idsPerSecond(layout)) },
    );
  }
  const { ids, idsPerPeriod, idsPerSecondInAll } = idCountsOf(settings);
  if (idsPerSecondInAll !== undefined)
    facts.push({ name: "ids_per_second_in_all", count: idsPerSecondInAll });
  if (ids !== undefined) facts.push({ name: "ids", count: ids });
  if (idsPerPeriod !== undefined) facts.push({ name: "ids_per_period", count: idsPerPeriod });
  const periods = periodsOf(kind);
  if (periods !== undefined) {
    const cut = nextCut(periods.unit, periods.timeZone, nowMs, offsetAt);
    if (cut !== undefined) facts.push({ name: "next_cut", timeMs: cut });
  }
  return [...facts, ...forecast(settings, nowMs, rate)];
}

/** When a tag that is made now reaches its ends at a rate. */
function forecast(
  settings: TagSettings,
  nowMs: number,
  rate: number | undefined,
): readonly PreviewFact[] {
  if (rate === undefined || rate <= 0) return [];
  const floor = firstIdOf(settings.kind) - 1n;
  const times = { createdAtMs: nowMs, updatedAtMs: nowMs };
  const place = { periodStart: "", generation: 0n, version: 0n, epoch: 1n, revision: 0n };
  const tag = { ...settings, ...place, ...times, state: "ACTIVE", floor } as const;
  const limits = horizonsOf(tag, { used: floor, idsPerSecond: rate, nowMs });
  return limits
    .filter(({ limit }) => limit !== "TIME_BITS" && limit !== "REDIS_MAX")
    .map(({ limit, runsOutAtMs }) =>
      runsOutAtMs === undefined
        ? { name: `forecast.${limit}`, text: "" }
        : { name: `forecast.${limit}`, timeMs: runsOutAtMs },
    );
}

function lengthFact({ shortest, longest }: TextFormat): PreviewFact {
  return {
    name: "text_length",
    text: shortest === longest ? `${shortest}` : `${shortest} – ${longest}`,
  };
}
