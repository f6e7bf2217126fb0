import { type FieldViolation, MAX_ID } from "@idmint/core";
import { type KindDraft, type Places, specOf, type TagKind } from "@idmint/core/kinds";

/** What only servers know is taken for granted: they say so where it is not. */
const EVERYWHERE: Places = { redisServerFor: () => "", hasTicketDatabases: true };

export interface Settled {
  /** Of no meaning where there are violations. */
  readonly settings: TagKind;
  readonly violations: readonly FieldViolation[];
  readonly ceiling: bigint;
}

/** The settings that servers would make of a draft, by the same code. */
export function settledKind(
  draft: KindDraft,
  {
    name,
    ceiling: wanted,
    nowMs,
  }: { readonly name: string; readonly ceiling: bigint | undefined; readonly nowMs: number },
): Settled {
  const spec = specOf(draft);
  const ceiling = wanted ?? spec.maxCeiling?.(draft) ?? MAX_ID;
  const violations: FieldViolation[] = [];
  const context = { name, ceiling, nowMs, placement: EVERYWHERE, violations };
  const settings = spec.settle(draft, context);
  return { settings, violations, ceiling: spec.ceiling?.(settings) ?? ceiling };
}
