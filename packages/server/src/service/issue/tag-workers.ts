import { IdmintError, type Reason } from "@idmint/core";
import { comesFrom } from "@idmint/core/kinds";
import { tagNotFound } from "@idmint/core/server";
import { SnowflakeTagSource } from "../kinds/snowflake/source.ts";
import type { WorkersOf } from "../worker-ids/service.ts";
import type { Directory } from "./directory.ts";

/** Refusals under which workers may be looked at. */
const LISTED: ReadonlySet<Reason> = new Set(["ISSUING_STOPPED", "TAG_PAUSED"]);

/** Finds the workers of the tags of a directory. */
export function workersIn(directory: Directory): WorkersOf {
  return async (tag, call, what) => {
    const entry = directory.get(tag) ?? (await directory.find(tag, call).catch(missing(tag)));
    const { kind } = entry.rules;
    const { source } = entry.buffer === undefined ? entry : { source: undefined };
    const isSnowflake = source instanceof SnowflakeTagSource;
    if (!comesFrom(kind, "lease") || !isSnowflake) throw withoutWorkers(tag, kind.kind);
    const refusal = directory.refusalOf(entry);
    const isListed = what === "list" && refusal !== undefined && LISTED.has(refusal.reason);
    if (refusal !== undefined && !isListed) return missing(tag)(refusal);
    const refusalNow = (): IdmintError | undefined => directory.refusalOf(entry);
    return { kind, registry: source.registry, epoch: source.epoch, refusal: refusalNow };
  };
}

/** Who asks for workers is told how to make a tag that has some. */
function missing(tag: string): (thrown: unknown) => never {
  return (thrown) => {
    const isMissing = thrown instanceof IdmintError && thrown.reason === "TAG_NOT_FOUND";
    throw isMissing ? tagNotFound(tag, "snowflake") : thrown;
  };
}

function withoutWorkers(tag: string, kind: string): IdmintError {
  return new IdmintError(
    "WRONG_KIND",
    `tag "${tag}" is of kind ${kind}; only tags of kind snowflake have worker ids`,
    { metadata: { tag, kind } },
  );
}
