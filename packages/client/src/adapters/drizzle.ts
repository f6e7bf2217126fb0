import "../node-version.ts";
import { IdmintError } from "@idmint/core";
import type { CallOptions, IdClient, IdTag } from "../api.ts";

/** Default values of id columns, for `$defaultFn`. */
export interface IdDefaults {
  /** For `bigint({ mode: "bigint" })`. */
  bigint(tag: string): () => bigint;
  /** For `bigint({ mode: "number" })`. Past 2^53 − 1 an insert is refused with UNSAFE_INTEGER. */
  number(tag: string): () => number;
  /** For `text()`, `varchar()` and `uuid()`. */
  string(tag: string): () => string;
  /**
   * Waits until ids of all these tags are in memory, and keeps ids ready from now on. Call it before the first insert.
   * Rejects when a tag cannot be used; with WRONG_KIND for one whose ids are never in memory, such as a sequence.
   */
  warm(options?: CallOptions): Promise<void>;
}

/**
 * Makes default values of Drizzle out of tags. They are synchronous, so they take ids that are in memory, and never wait:
 * without such an id the insert is refused with SEGMENT_NOT_READY.
 */
export function idDefaults(client: IdClient): IdDefaults {
  const tags = new Set<IdTag>();
  const defaultOf =
    <T>(next: (tag: IdTag) => T) =>
    (name: string): (() => T) => {
      const tag = client.tag(name);
      tags.add(tag);
      return () => {
        try {
          return next(tag);
        } catch (thrown) {
          throw withWayOut(name, thrown);
        }
      };
    };
  return {
    bigint: defaultOf((tag) => tag.nextSync()),
    number: defaultOf((tag) => tag.nextNumberSync()),
    string: defaultOf((tag) => tag.nextStringSync()),
    async warm(options) {
      await Promise.all([...tags].map((tag) => tag.warm(options)));
    },
  };
}

function withWayOut(tag: string, thrown: unknown): unknown {
  if (!(thrown instanceof IdmintError) || thrown.reason !== "SEGMENT_NOT_READY") return thrown;
  const { metadata, retryAfterMs = 0 } = thrown;
  const text =
    `no id of tag "${tag}" is in memory, and a default value cannot wait. Await warm() of idDefaults before the first ` +
    `insert. If one insert has more rows than ids are held, raise the client's option min, or set the ids of ` +
    `\`await client.tag("${tag}").take(count)\``;
  return new IdmintError("SEGMENT_NOT_READY", text, { metadata, retryAfterMs, cause: thrown });
}
