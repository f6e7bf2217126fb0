import { type Node, nodeStateToJSON, type GetNodeStatusResponse, type Tag } from "@idmint/proto";
import { hasPeriods } from "../../text/kind-text.ts";
import { columns, plain } from "../../text/table.ts";
import { tagStateWord } from "../../text/tag-text.ts";
import type { Rates } from "./watch-state.ts";

/** One look at everything that is watched. */
export interface Seen {
  readonly time: Date;
  readonly status: GetNodeStatusResponse;
  readonly nodes: readonly Node[];
  readonly moreNodes: boolean;
  readonly tags: readonly Tag[];
  readonly moreTags: boolean;
  /** Refusals of the last minute in the audit trail; undefined: this caller may not read it. */
  readonly refusals: bigint | undefined;
  readonly rates: Rates;
}

export function seenJson({ time, status, nodes, tags, refusals, rates }: Seen): unknown {
  return {
    time: time.toISOString(),
    state: stateWord(status),
    issuedIds: String(status.issuedIds),
    issuedPerSecond: rates.issued ?? null,
    wastedIds: String(status.wastedIds),
    wastedPerSecond: rates.wasted ?? null,
    notAllowedLastMinute: refusals === undefined ? null : String(refusals),
    nodes: nodes.map(({ nodeId, instance, alive, draining, weight }) => ({
      nodeId,
      instance,
      alive,
      draining,
      weight,
    })),
    tags: tags.map((tag) => ({
      name: tag.name,
      state: tagStateWord(tag.state),
      floor: String(tag.floor),
      left: leftOf(tag)?.toString() ?? null,
      grantedPerSecond: rates.granted.get(tag.name) ?? null,
    })),
  };
}

export function seenText(seen: Seen, address: string): string {
  const { time, status, nodes, moreNodes, tags, moreTags, refusals, rates } = seen;
  const alive = nodes.filter((node) => node.alive).length;
  const facts = columns([
    ["server", `${plain(address)}  ${stateWord(status)}  ${time.toISOString().slice(11, 19)} UTC`],
    ["issued", `${status.issuedIds} ids, ${rateText(rates.issued)}`],
    ["wasted", `${status.wastedIds} ids, ${rateText(rates.wasted)}`],
    ["not allowed", refusals === undefined ? "unknown" : `${refusals} calls in the last minute`],
    ["servers", `${alive} of ${nodes.length}${moreNodes ? " or more" : ""} alive`],
  ]);
  const nodeRows = nodes.map((node) => [
    plain(node.instance),
    `${node.alive ? "alive" : "silent"}${node.draining ? ", drained" : ""}`,
    String(node.weight),
    plain(node.zone),
  ]);
  const tagRows = tags.map((tag) => [
    plain(tag.name),
    tagStateWord(tag.state),
    rateText(rates.granted.get(tag.name)),
    leftOf(tag)?.toString() ?? "-",
  ]);
  const more = moreTags ? "There are more tags: name those to watch.\n" : "";
  return [
    facts,
    columns([["SERVER", "STATE", "WEIGHT", "ZONE"], ...nodeRows]),
    `${columns([["TAG", "STATE", "GRANTED", "LEFT"], ...tagRows])}${more}`,
  ].join("\n");
}

/** Ids up to the ceiling. Ids of kinds that do not count have none. */
function leftOf(tag: Tag): bigint | undefined {
  const kind = tag.kind?.$case;
  const counts = kind === "segment" || kind === "sequence";
  return counts && !hasPeriods(tag) ? tag.ceiling - tag.floor : undefined;
}

function stateWord({ state }: GetNodeStatusResponse): string {
  return nodeStateToJSON(state).replace("NODE_STATE_", "");
}

function rateText(rate: number | undefined): string {
  if (rate === undefined) return "-";
  return `${rate >= 100 ? Math.round(rate) : Number(rate.toPrecision(3))} a second`;
}
