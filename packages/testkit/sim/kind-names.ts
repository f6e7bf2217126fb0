/** What a tag of a history can be: a kind, and at times how its ids are written. */
export type SimKindName =
  | "segment"
  | "sequence"
  | "daily"
  | "snowflake"
  | "uuid"
  | "object_id"
  | "invoice"
  | "coupons"
  | "serial"
  | "counted_in_redis"
  | "redis_snowflake"
  | "leased_in_redis"
  | "ticket";
