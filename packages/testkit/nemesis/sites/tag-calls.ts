// Calls of operators that may be made again when their answer was lost.
import { IdmintError } from "@idmint/client";
import type { Tag } from "@idmint/proto";
import type { Api } from "../../src/fleet/api.ts";

/** Done, or done before its answer was lost. */
async function once(call: Promise<unknown>, done: string): Promise<true> {
  try {
    await call;
  } catch (thrown) {
    if (!(thrown instanceof IdmintError) || thrown.reason !== done) throw thrown;
  }
  return true;
}

export function made(api: Api, tag: Tag): Promise<true> {
  const request = { tag, validateOnly: false };
  return once(api.send(api.tags.createTag.bind(api.tags), request), "TAG_EXISTS");
}

export function removed(api: Api, name: string): Promise<true> {
  const request = { name, etag: "", validateOnly: false };
  return once(api.send(api.tags.deleteTag.bind(api.tags), request), "TAG_NOT_FOUND");
}
