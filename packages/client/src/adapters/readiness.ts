// What the adapters of frameworks share: waiting for tags at the start, and telling whether they can be used.
import { IdmintError, type Reason } from "@idmint/core";
import type { IdClient } from "../api.ts";

/** Options of the adapters of frameworks. */
export interface IdmintOptions {
  /** The framework owns it from now on, and closes it at its own end. */
  readonly client: IdClient;
  /** Tags that must be usable before the application starts, and for it to be ready. Default: none. */
  readonly tags?: readonly string[] | undefined;
}

/**
 * What is known of a tag. "in memory": ids are ready. "minted by servers": of a kind whose ids are never held here, which
 * cannot be tried without using one up. Anything else is why there are no ids.
 */
export type TagReadiness = "in memory" | "minted by servers" | Reason;

/** Whether the tags can be used. */
export interface Readiness {
  readonly isReady: boolean;
  readonly tags: Readonly<Record<string, TagReadiness>>;
}

/** How long a question for readiness waits for ids, in milliseconds. */
const READINESS_MS = 1_000;

/** Waits until all tags can be used. Rejects with why one cannot. */
export async function warmAll({ client, tags = [] }: IdmintOptions): Promise<void> {
  await Promise.all(tags.map((tag) => warm(client, tag)));
}

/** Looks at all tags. Never rejects. */
export async function readinessOf({ client, tags = [] }: IdmintOptions): Promise<Readiness> {
  const states = await Promise.all(
    tags.map(async (tag): Promise<readonly [string, TagReadiness, boolean]> => {
      try {
        return [tag, await warm(client, tag, READINESS_MS), true];
      } catch (thrown) {
        return [tag, IdmintError.from(thrown).reason, false];
      }
    }),
  );
  return {
    isReady: states.every(([, , isReady]) => isReady),
    tags: Object.fromEntries(states.map(([tag, state]) => [tag, state])),
  };
}

async function warm(client: IdClient, name: string, deadlineMs?: number): Promise<TagReadiness> {
  try {
    await client.tag(name).warm(deadlineMs === undefined ? {} : { deadlineMs });
    return "in memory";
  } catch (thrown) {
    const error = IdmintError.from(thrown);
    if (error.reason === "WRONG_KIND") return "minted by servers";
    throw error;
  }
}
