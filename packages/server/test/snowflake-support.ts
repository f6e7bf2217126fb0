import {
  CreateTagRequest,
  type DeepPartial,
  GenerateIdsRequest,
  IdServiceService,
  LeaseWorkerRequest,
  type LeaseWorkerResponse,
  type SnowflakeKind,
  type Tag,
  TagServiceService,
  WorkerServiceService,
} from "@idmint/proto";
import { call, idsOf, type TestServer } from "./support.ts";

/** Bits of the default layout. */
export const DEFAULT_BITS = { timeBits: 41, workerBits: 10, sequenceBits: 12 };

export async function createSnowflake(
  { tags }: Pick<TestServer, "tags">,
  name: string,
  value: DeepPartial<SnowflakeKind> = {},
): Promise<Tag> {
  const request = { tag: { name, kind: { $case: "snowflake" as const, value } } };
  const { tag } = await call(
    tags,
    TagServiceService.createTag,
    CreateTagRequest.fromPartial(request),
  );
  if (tag === undefined) throw new Error("an answer without a tag");
  return tag;
}

/** Ids of one call, in the order of its answer. */
export async function takeIds(
  { ids }: Pick<TestServer, "ids">,
  tag: string,
  count: number,
  timeoutMs?: number,
): Promise<bigint[]> {
  const request = GenerateIdsRequest.fromPartial({ tag, count });
  const { segments } = await call(ids, IdServiceService.generateIds, request, timeoutMs);
  return idsOf(segments);
}

export function lease(
  { workers }: Pick<TestServer, "workers">,
  wish: DeepPartial<LeaseWorkerRequest>,
): Promise<LeaseWorkerResponse> {
  const request = LeaseWorkerRequest.fromPartial(wish);
  return call(workers, WorkerServiceService.leaseWorker, request);
}
