import type { Benchmark } from "./lib/benchmark.ts";
import { drain } from "./sdk/drain.ts";
import { snowflake } from "./sdk/snowflake.ts";
import { againstNpm, warmPath } from "./sdk/warm-path.ts";
import { accept } from "./server/accept.ts";
import { dropIn } from "./server/drop-in.ts";
import { coldTag } from "./server/cold-tag.ts";
import { doors } from "./server/doors.ts";
import { doorsCalls } from "./server/doors-calls.ts";
import { doorsIdle, doorsShared } from "./server/doors-connections.ts";
import { etcd } from "./server/etcd.ts";
import { manyTags } from "./server/many-tags.ts";
import { overload } from "./server/overload.ts";
import { sequencePostgres, sequenceRedis } from "./server/sequence.ts";
import { sizing } from "./server/sizing.ts";
import { start } from "./server/start.ts";
import { storeLatency } from "./server/store-latency.ts";
import { streamIds } from "./server/stream-ids.ts";
import { allocateSegment, generateId, generateIds } from "./server/unary.ts";
import { telemetry } from "./server/telemetry.ts";
import { unguessable } from "./server/unguessable.ts";
import { processes } from "./server/processes.ts";

/** All benchmarks, in the order they run. */
export const benchmarks: readonly Benchmark[] = [
  generateId,
  doors,
  doorsCalls,
  doorsShared,
  doorsIdle,
  allocateSegment,
  generateIds,
  streamIds,
  dropIn,
  processes,
  telemetry,
  overload,
  storeLatency,
  coldTag,
  manyTags,
  sequencePostgres,
  sequenceRedis,
  etcd,
  unguessable,
  accept,
  start,
  sizing,
  warmPath,
  drain,
  snowflake,
  againstNpm,
];
