import { IdmintError } from "@idmint/core";
import { countsInRedis } from "@idmint/core/kinds";
import type { Raised, RaiseRequest, Refused } from "@idmint/core/server";
import type { Etcd, Kept } from "./session/etcd.ts";
import { fitOf, refused, refusedWith } from "./grant.ts";
import { changeRows, type RowChange } from "./session/kept-rows.ts";

/**
 * Raises the bound of a tag that counts in Redis.
 *
 * INVARIANTS: bound and generation are written over the very row they were decided on, so no two callers are answered the
 * same ids or the same new generation; they are answered only when a quorum has them; `ceiling − floor` cannot overflow,
 * `floor + by` could.
 */
export async function raise(etcd: Etcd, request: RaiseRequest): Promise<Raised | Refused> {
  const { tag } = request;
  try {
    return await etcd.run((session) =>
      etcd.alone([tag], session.deadlineMs, async () => {
        const answers = await changeRows<Raised | Refused>(session, [tag], (_, row) =>
          raised(request, row),
        );
        return answers.get(tag) as Raised | Refused;
      }),
    );
  } catch (error) {
    if (!(error instanceof IdmintError) || error.reason !== "STORE_EPOCH_CHANGED") throw error;
    return refusedWith(tag, error);
  }
}

function raised(
  request: RaiseRequest,
  from: Kept,
): { change: RowChange; answer: Raised } | { answer: Refused } {
  const { tag: name, by, atLeast, newGeneration, generationFrom = 0n } = request;
  const fit = fitOf(from.tag, request);
  if ("outcome" in fit) return { answer: fit };
  if (!countsInRedis(fit.kind)) return { answer: refused(name, "WRONG_KIND") };
  if (fit.state === "PAUSED") return { answer: refused(name, "TAG_PAUSED") };
  const { floor: before, ceiling, epoch } = fit;
  const left = ceiling - before;
  if (left === 0n) return { answer: refused(name, "TAG_EXHAUSTED") };
  const higher = by < left ? before + by : ceiling;
  const wanted = atLeast < ceiling ? atLeast : ceiling;
  const floor = higher > wanted ? higher : wanted;
  const next = fit.generation + 1n > generationFrom ? fit.generation + 1n : generationFrom;
  const generation = newGeneration ? next : fit.generation;
  const version = fit.version + 1n;
  return {
    change: { name, from, tag: { ...fit, floor, generation, version } },
    answer: { outcome: "raised", tag: name, before, floor, generation, version, epoch },
  };
}
