import { IdmintError } from "@idmint/core";
import type { TagDraft } from "../service/tags/settings.ts";
import type { TagService } from "../service/tags/service.ts";

/** The tag that start-dev creates. */
export const DEMO_TAG = "demo";

/** Creates it if it does not exist yet. */
export async function makeDemoTag(tags: Pick<TagService, "create">): Promise<void> {
  const description = "created by start-dev, for trying things out";
  const draft: TagDraft = {
    name: DEMO_TAG,
    description,
    order: undefined,
    ceiling: 0n,
    kind: { kind: "segment" },
    format: undefined,
    unguessable: undefined,
  };
  try {
    await tags.create(draft, []);
  } catch (thrown) {
    // A demo tag with other settings is as good.
    if (IdmintError.from(thrown).reason !== "TAG_EXISTS") throw thrown;
  }
}
