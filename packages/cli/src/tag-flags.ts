import { MAX_SEGMENT_COUNT } from "@idmint/core";
import { Order, type SegmentKind, Tag } from "@idmint/proto";
import { type Command, Option } from "commander";
import { ceiling, duration, id, oneOf, smallNumber } from "./parse.ts";

/** The settings of a tag as the command line gives them; undefined: not given. */
export interface TagFlags {
  readonly kind?: "segment";
  readonly start?: bigint;
  readonly ceiling?: bigint;
  readonly min?: number;
  readonly max?: number;
  readonly holdFor?: number;
  readonly maxAge?: number;
  readonly order?: Order;
  readonly description?: string;
}

const ORDERS = {
  unordered: Order.UNORDERED,
  "per-client": Order.PER_CLIENT,
  strict: Order.STRICT,
};

const COUNT_LIMITS = { min: 1, max: MAX_SEGMENT_COUNT };
const TIME_LIMITS = { minMs: 1_000, maxMs: 86_400_000 };

/** The flags of a tag's settings. `isNew`: also what cannot be changed later. Defaults are the server's. */
export function addTagFlags(command: Command, { isNew }: { isNew: boolean }): Command {
  // The wire cannot tell 0 from "not given", so 0 is refused here; what a setting may be beside the others is the
  // server's to judge.
  const options = [
    new Option("--start <id>", "first id (default 1)").argParser(id("--start")),
    new Option(
      "--ceiling <id>",
      "highest id: a number, int32 (2^31−1), js (2^53−1) or int64 (2^63−1, the default)",
    ).argParser(ceiling("--ceiling")),
    new Option(
      "--min <count>",
      "fewest ids a server takes from the store at once (default 1000)",
    ).argParser(smallNumber("--min", COUNT_LIMITS)),
    new Option(
      "--max <count>",
      "most ids a server takes from the store at once (default 100000000)",
    ).argParser(smallNumber("--max", COUNT_LIMITS)),
    new Option(
      "--hold-for <time>",
      "how long a server's segment shall last at the peak rate, 1s to 24h (default 15m)",
    ).argParser(duration("--hold-for", TIME_LIMITS)),
    new Option(
      "--max-age <time>",
      "how long an SDK may keep a segment, 1s to 24h (default 10m)",
    ).argParser(duration("--max-age", TIME_LIMITS)),
    new Option(
      "--order <order>",
      "unordered (default), per-client or strict; not every kind has every order",
    ).argParser(oneOf("--order", ORDERS)),
    new Option("--description <text>", "what the ids are for"),
  ];
  if (isNew) {
    command.addOption(
      new Option("--kind <kind>", "how ids are made: segment (default)").argParser(
        oneOf("--kind", { segment: "segment" }),
      ),
    );
  }
  for (const option of options) command.addOption(option);
  return command;
}

/** The tag that `tag create` asks for. */
export function newTag(name: string, flags: TagFlags): Tag {
  return tagOf(name, flags);
}

/** The tag and the mask that `tag update` sends: only what was given, so that nothing else is touched. */
export function tagUpdate(
  name: string,
  flags: TagFlags,
  etag: string | undefined,
): { tag: Tag; updateMask: string[] } {
  const paths: readonly [keyof TagFlags, string][] = [
    ["description", "description"],
    ["order", "order"],
    ["ceiling", "ceiling"],
    ["start", "segment.start"],
    ["min", "segment.min"],
    ["max", "segment.max"],
    ["holdFor", "segment.hold_for"],
    ["maxAge", "segment.max_age"],
  ];
  const updateMask = paths.filter(([flag]) => flags[flag] !== undefined).map(([, path]) => path);
  return { tag: { ...tagOf(name, flags), etag: etag ?? "" }, updateMask };
}

function tagOf(name: string, flags: TagFlags): Tag {
  const segment: SegmentKind = {
    start: flags.start ?? 0n,
    min: flags.min ?? 0,
    max: flags.max ?? 0,
    holdFor: durationOf(flags.holdFor),
    maxAge: durationOf(flags.maxAge),
  };
  return {
    ...Tag.create(),
    name,
    description: flags.description ?? "",
    kind: { $case: "segment", value: segment },
    order: flags.order ?? Order.UNSPECIFIED,
    ceiling: flags.ceiling ?? 0n,
  };
}

function durationOf(ms: number | undefined): SegmentKind["holdFor"] {
  if (ms === undefined) return undefined;
  return { seconds: BigInt(Math.floor(ms / 1_000)), nanos: (ms % 1_000) * 1_000_000 };
}
