import type { GroupCommitOptions } from "@idmint/core";
import type { Tag } from "@idmint/core/server";
import { notConfigured } from "../call.ts";
import type { Counters } from "../counters.ts";
import type { Emit } from "../events.ts";
import type { Grants } from "../upstream/grants.ts";
import { type Counter, GroupedSource, type GroupedSourcePorts } from "./grouped-source.ts";
import type { MakeSource, RedisCounters, SourceName, SourceOf } from "./kind.ts";
import { sequenceCounter } from "./sequence/counter.ts";
import type { TagSource } from "./source.ts";
import { textSources } from "./text-ids.ts";
import type { TextMakers } from "./text-source.ts";

export interface SourcesPorts extends Omit<GroupedSourcePorts, "onEvent"> {
  readonly grants: Grants;
  readonly counters: Counters;
  readonly emit: Emit;
  readonly makers: TextMakers;
  readonly snowflake: SourceOf<"snowflake">;
  /** Undefined: this server has no ticket databases. */
  readonly ticket: SourceOf<"ticket"> | undefined;
  /** Undefined: this server has no Redis. */
  readonly redis: RedisCounters | undefined;
}

/** How a server makes sources. The compiler names the kind that has none. */
export function sourceMaker(ports: SourcesPorts, options: GroupCommitOptions): MakeSource {
  const { grants, redis } = ports;
  const grouped = groupedSources(ports, options);
  const sources: { readonly [Name in SourceName]: SourceOf<Name> } = {
    sequence: (tag) => grouped(tag, sequenceCounter(tag, grants, redis)),
    redis_snowflake: (tag) => grouped(tag, redis?.redis_snowflake(tag)),
    ticket: (tag) => ports.ticket?.(tag) ?? grouped(tag, undefined, "ticket.urls"),
    snowflake: ports.snowflake,
    ...textSources(ports.makers),
  };
  // The tag is of the kind that its source is looked up by.
  return (tag) => (sources[tag.kind.kind] as MakeSource)(tag);
}

/** Makes sources that ask a counter for all waiting calls at once. Undefined: it is not in this server's reach. */
function groupedSources(
  { clock, timers, afterTurn, counters, emit }: SourcesPorts,
  options: GroupCommitOptions,
): (tag: Tag, counter: Counter | undefined, option?: string) => TagSource {
  const ports: GroupedSourcePorts = {
    clock,
    timers,
    afterTurn,
    onEvent: (event) => {
      if (event.type === "wasted") counters.wastedIds += event.count;
      emit(event);
    },
  };
  return ({ name }, counter, option = "redis.urls") =>
    new GroupedSource(name, counter ?? unreachable(name, option), options, ports);
}

/** Other servers may be configured with what this tag counts in. */
function unreachable(tag: string, option: string): Counter {
  const why = `counts elsewhere, and this server is not configured with ${option}: set it, the same on all servers`;
  const error = notConfigured(tag, why);
  return { commit: () => Promise.reject(error) };
}
