import {
  CreateTagRequest,
  GenerateIdsRequest,
  IdServiceService,
  TagServiceService,
} from "@idmint/proto";
import { call, clientsOf, sleep } from "../support.ts";

/** Short, so that each caller is refused several times in an outage. */
const CALL_MS = 1_000;

/** Callers that want ids of that many tags all the time, each of which needs the store. */
export async function busyWith(grpcAddress: string, tagCount: number): Promise<Busy> {
  const { ids, tags } = clientsOf(grpcAddress);
  const names = Array.from({ length: tagCount }, (_, at) => `t${at}`);
  for (const name of names) {
    // Segments are small, so that each call needs the store.
    const kind = { $case: "segment", value: { min: 10, max: 10 } } as const;
    await call(
      tags,
      TagServiceService.createTag,
      CreateTagRequest.fromPartial({ tag: { name, kind } }),
    );
  }
  const counted = { served: 0, refused: 0 };
  const over = new AbortController();
  const busy = names.map(async (tag) => {
    while (!over.signal.aborted) {
      const request = GenerateIdsRequest.fromPartial({ tag, count: 10 });
      const asked = call(ids, IdServiceService.generateIds, request, CALL_MS);
      await asked.then(
        () => counted.served++,
        () => counted.refused++,
      );
      await sleep(20);
    }
  });
  const end = async (): Promise<void> => {
    over.abort();
    await Promise.all(busy);
  };
  return { counted, end };
}

interface Busy {
  readonly counted: { readonly served: number; readonly refused: number };
  readonly end: () => Promise<void>;
}
