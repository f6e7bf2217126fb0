import type { GroupCommitOptions, Tag } from "@idmint/core";
import { notConfigured } from "./call.ts";
import type { Counters } from "./counters.ts";
import type { TagSource } from "./entries.ts";
import type { Emit } from "./events.ts";
import type { Grants } from "./grants.ts";
import { type Counter, GroupedSource, type GroupedSourcePorts } from "./grouped-source.ts";
import { type TextMakers, TextSource } from "./text-source.ts";

/** Makes the source of a tag that is not of kind segment. */
export type MakeSource = (tag: Tag) => TagSource;

export interface SourcesPorts extends Omit<GroupedSourcePorts, "onEvent"> {
  readonly grants: Grants;
  readonly counters: Counters;
  readonly emit: Emit;
  readonly makers: TextMakers;
  /** The source of a snowflake tag. */
  readonly snowflake: MakeSource;
  /** Sources of what counts elsewhere than in the store; undefined for tags that this server cannot reach. */
  readonly elsewhere: (tag: Tag, grouped: MakeGrouped) => TagSource | undefined;
}

/** Makes a source that asks a counter for all waiting calls at once. */
export type MakeGrouped = (counter: Counter) => TagSource;

/** How a server makes sources: sequences of the store by its grants, and the rest as `elsewhere` says. */
export function sourceMaker(ports: SourcesPorts, options: GroupCommitOptions): MakeSource {
  const { grants, counters, emit, elsewhere, makers, snowflake } = ports;
  const grouped: GroupedSourcePorts = {
    clock: ports.clock,
    timers: ports.timers,
    afterTurn: ports.afterTurn,
    onEvent: (event) => {
      if (event.type === "wasted") counters.wastedIds += event.count;
      emit(event);
    },
  };
  return (tag) => {
    const { name, kind } = tag;
    if (kind.kind === "uuid" || kind.kind === "object_id") return new TextSource(kind, makers);
    if (kind.kind === "snowflake") return snowflake(tag);
    const make: MakeGrouped = (counter) => new GroupedSource(name, counter, options, grouped);
    if (kind.kind === "sequence" && kind.redis === undefined) {
      return make(storeCounter(name, grants));
    }
    return elsewhere(tag, make) ?? make(unreachable(tag));
  };
}

/** A sequence that counts in the store: each round trip is one grant, of exactly the ids that are wanted. */
function storeCounter(tag: string, grants: Grants): Counter {
  return {
    commit: (count) => grants.request({ tag, kind: "sequence", count, minCount: count, after: 0n }),
  };
}

/** Other servers may be configured with what this tag counts in. */
function unreachable({ name, kind }: Tag): Counter {
  const where = kind.kind === "ticket" ? "ticket.urls" : "redis.urls";
  const why = `counts elsewhere, and this server is not configured with ${where}: set it, the same on all servers`;
  const error = notConfigured(name, why);
  return { commit: () => Promise.reject(error) };
}
