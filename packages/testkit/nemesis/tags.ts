// The tags of a site: every kind of id at once.
import {
  Order,
  PeriodUnit,
  RedisSnowflakeKind,
  SegmentKind,
  SequenceBackend,
  SequenceKind,
  SnowflakeKind,
  Tag,
  TicketKind,
  UuidKind,
} from "@idmint/proto";
import type { CallerLoad } from "./callers/config.ts";

/** What the judges have to know of a tag. */
export interface SiteTag {
  readonly tag: Tag;
  /** `strict`: over all callers; `client`: within one SDK. */
  readonly order: "client" | "none" | "strict";
  /** Callers go on while the store is away: ids are in memory for longer than any outage here, or need no store. */
  readonly survives: boolean;
  /** What has to answer before an id is issued. */
  readonly needs: "redis" | "store" | "tickets";
  /** An operator pauses or deletes it now and then. */
  readonly isDisturbed: boolean;
}

type Kind = NonNullable<Tag["kind"]>;

const segment = (settings: Partial<SegmentKind> = {}): Kind => ({
  $case: "segment",
  value: { ...SegmentKind.create(), ...settings },
});
const sequence = (settings: Partial<SequenceKind> = {}): Kind => ({
  $case: "sequence",
  value: { ...SequenceKind.create(), ...settings },
});
const uuid = (version: number): Kind => ({
  $case: "uuid",
  value: { ...UuidKind.create(), version },
});

function siteTag(
  name: string,
  kind: Kind,
  its: Partial<SiteTag> & { set?: Partial<Tag> },
): SiteTag {
  const { order = "none", survives = false, needs = "store", isDisturbed = false, set = {} } = its;
  const tag = { ...Tag.create(), name, kind, ...set };
  return { tag, order, survives, needs, isDisturbed };
}

/** Small segments, so that stores are asked often. */
const SMALL = { min: 500, max: 500 };
const PER_CLIENT = { order: "client", set: { order: Order.PER_CLIENT } } as const;

/** What every store can do. */
export const COMMON: readonly SiteTag[] = [
  siteTag("orders", segment({ min: 20_000 }), { survives: true }),
  siteTag("bulk", segment({ min: 200_000 }), { survives: true }),
  siteTag("small", segment(SMALL), {}),
  siteTag("ordered", segment(SMALL), PER_CLIENT),
  siteTag("bills", sequence({ start: 1_001n }), { order: "strict" }),
  siteTag("daily", sequence({ period: PeriodUnit.DAY, timeZone: "Asia/Shanghai" }), {
    order: "strict",
  }),
  siteTag("clicks", { $case: "snowflake", value: SnowflakeKind.create() }, {}),
  siteTag("sessions", uuid(7), { survives: true }),
  siteTag("tokens", uuid(4), { survives: true }),
  siteTag("paused", segment(SMALL), { isDisturbed: true }),
  siteTag("remade", segment(SMALL), { isDisturbed: true }),
];

/** What Redis and ticket databases add. */
export const COUNTED_ELSEWHERE: readonly SiteTag[] = [
  siteTag("fast-bills", sequence({ backend: SequenceBackend.REDIS, step: 2_000 }), {
    order: "strict",
    needs: "redis",
  }),
  siteTag(
    "marks",
    { $case: "redisSnowflake", value: RedisSnowflakeKind.create() },
    {
      needs: "redis",
    },
  ),
  siteTag("tickets", { $case: "ticket", value: TicketKind.create() }, { needs: "tickets" }),
];

const next = (tag: string, perSecond: number, parallel = 1): CallerLoad => ({
  tag,
  call: "next",
  perSecond,
  parallel,
});
const take = (tag: string, perSecond: number, count: number): CallerLoad => ({
  tag,
  call: "take",
  perSecond,
  count,
  parallel: 2,
});
const text = (tag: string, perSecond: number): CallerLoad => ({ tag, call: "text", perSecond });
const period = (tag: string, perSecond: number): CallerLoad => ({ tag, call: "period", perSecond });

/** What programs with the SDK ask for, each of them. */
export const SDK_LOADS: readonly CallerLoad[] = [
  next("orders", 150, 8),
  { tag: "orders", call: "sync", perSecond: 50 },
  take("bulk", 40, 100),
  next("small", 60, 4),
  take("small", 4, 50),
  next("ordered", 60),
  next("ordered", 30, 4),
  next("bills", 15),
  next("bills", 15, 4),
  period("daily", 10),
  next("clicks", 40, 2),
  text("sessions", 20),
  text("tokens", 20),
  next("paused", 10),
  next("remade", 10),
];

/** What programs without it ask for, over gRPC. */
export const RAW_LOADS: readonly CallerLoad[] = [
  next("orders", 30, 4),
  take("bulk", 10, 200),
  take("small", 5, 50),
  next("bills", 15),
  next("bills", 15, 4),
  take("bills", 5, 7),
  next("daily", 10, 2),
  next("clicks", 20, 2),
  take("clicks", 5, 50),
  text("sessions", 10),
  next("paused", 5),
  next("remade", 5),
];

/** Over HTTP, and in other languages. */
export const FOREIGN_LOADS: readonly CallerLoad[] = [
  next("orders", 15, 2),
  take("bulk", 5, 100),
  next("bills", 10),
  next("daily", 5),
  next("clicks", 10),
  text("tokens", 5),
];

/** What all of them ask for besides, where Redis and ticket databases are. */
export const MORE_LOADS: readonly CallerLoad[] = [
  next("fast-bills", 20),
  next("fast-bills", 20, 4),
  next("marks", 10),
  next("tickets", 15, 2),
];
