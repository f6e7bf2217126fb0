import type { TagKind } from "@idmint/core/kinds";

/** Whether ids of a kind are held in this process, made in it, or asked of a server each time; "strict": in the order of time. */
export const WAYS: Readonly<Record<TagKind["kind"], "asked" | "held" | "made" | "strict">> = {
  segment: "held",
  sequence: "strict",
  redis_snowflake: "asked",
  ticket: "asked",
  snowflake: "made",
  uuid: "made",
  object_id: "made",
};
