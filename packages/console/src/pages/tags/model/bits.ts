import { COUNTERS_PER_MS, lifeEndMs, MAX_SNOWFLAKE_SHARD, type TagKind } from "@idmint/core/kinds";

/** A field of the bits of an id. Its text is `bits.NAME`. */
export interface Bits {
  readonly name: string;
  readonly bits: number;
}

/** The bits of an id; empty for ids that are counted, and for text. */
export function bitsOf(kind: TagKind): readonly Bits[] {
  if (kind.kind === "snowflake") {
    const { layout } = kind;
    return [
      { name: "time", bits: layout.timeBits },
      { name: "extension", bits: layout.extensionBits },
      { name: "data_center", bits: layout.dataCenterBits },
      { name: "worker", bits: layout.workerBits },
      { name: "sequence", bits: layout.sequenceBits },
    ].filter(({ bits }) => bits > 0);
  }
  if (kind.kind !== "redis_snowflake") return [];
  const { timeOriginMs } = kind;
  return [
    { name: "time", bits: Math.log2(lifeEndMs(timeOriginMs) - timeOriginMs + 1) },
    { name: "shard", bits: Math.log2(MAX_SNOWFLAKE_SHARD + 1) },
    { name: "counter", bits: Math.log2(COUNTERS_PER_MS) },
  ];
}
