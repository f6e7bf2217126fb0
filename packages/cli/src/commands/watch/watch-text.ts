import {
  type GetNodeStatusResponse,
  type ListFiguresResponse,
  type Node,
  nodeStateToJSON,
  type Tag,
} from "@idmint/proto";
import {
  alarmsText,
  latencyText,
  rateText,
  ratesOf,
  silenceWord,
} from "../../text/figures-text.ts";
import { countsToFloor, hasPeriods } from "../../text/kind-text.ts";
import { plain } from "../../process/plain.ts";
import { columns } from "../../text/table.ts";
import { tagStateWord } from "../../text/tag-text.ts";
import type { Rates } from "./watch-state.ts";

/** One look at everything that is watched. */
export interface Seen {
  readonly time: Date;
  readonly status: GetNodeStatusResponse;
  readonly figures: ListFiguresResponse;
  readonly nodes: readonly Node[];
  readonly moreNodes: boolean;
  readonly tags: readonly Tag[];
  readonly moreTags: boolean;
  /** Refusals of the last minute in the audit trail; undefined: this caller may not read it. */
  readonly refusals: bigint | undefined;
  readonly rates: Rates;
}

export function seenJson({ time, status, figures, nodes, tags, refusals, rates }: Seen): unknown {
  const counted = countedBy(figures);
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
      issuedPerSecond: counted.get(nodeId)?.rates?.issued ?? null,
      refusedPerSecond: counted.get(nodeId)?.rates?.refused ?? null,
      latencyP99Micros: counted.get(nodeId)?.p99 ?? null,
      silentFor: counted.get(nodeId)?.silentFor ?? null,
    })),
    alarms: figures.nodes.flatMap(({ instance, alarms }) =>
      alarms.map(({ alarm, lasting }) => ({ instance, alarm, lasting })),
    ),
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
  const { time, status, figures, nodes, moreNodes, tags, moreTags, refusals, rates } = seen;
  const alive = nodes.filter((node) => node.alive).length;
  const facts = columns([
    ["server", `${plain(address)}  ${stateWord(status)}  ${time.toISOString().slice(11, 19)} UTC`],
    ["issued", `${status.issuedIds} ids, ${perSecondText(rates.issued)}`],
    ["wasted", `${status.wastedIds} ids, ${perSecondText(rates.wasted)}`],
    ["not allowed", refusals === undefined ? "unknown" : `${refusals} calls in the last minute`],
    ["servers", `${alive} of ${nodes.length}${moreNodes ? " or more" : ""} alive`],
  ]);
  const counted = countedBy(figures);
  const nodeRows = nodes.map((node) => {
    const its = counted.get(node.nodeId);
    return [
      plain(node.instance),
      `${node.alive ? "alive" : "silent"}${node.draining ? ", drained" : ""}`,
      String(node.weight),
      plain(node.zone),
      rateText(its?.rates?.issued),
      rateText(its?.rates?.refused),
      latencyText(its?.p99),
      its?.silentFor ?? "",
    ];
  });
  const tagRows = tags.map((tag) => [
    plain(tag.name),
    tagStateWord(tag.state),
    perSecondText(rates.granted.get(tag.name)),
    leftOf(tag)?.toString() ?? "-",
  ]);
  const more = moreTags ? "There are more tags: name those to watch.\n" : "";
  const head = ["SERVER", "STATE", "WEIGHT", "ZONE", "IDS/S", "REFUSED/S", "P99", ""];
  const alarms = alarmsText(figures);
  return [
    facts,
    columns([head, ...nodeRows]),
    ...(alarms === "" ? [] : [alarms]),
    `${columns([["TAG", "STATE", "GRANTED", "LEFT"], ...tagRows])}${more}`,
  ].join("\n");
}

/** Ids up to the ceiling. Ids of kinds that do not count have none. */
function leftOf(tag: Tag): bigint | undefined {
  return countsToFloor(tag) && !hasPeriods(tag) ? tag.ceiling - tag.floor : undefined;
}

function stateWord({ state }: GetNodeStatusResponse): string {
  return nodeStateToJSON(state).replace("NODE_STATE_", "");
}

function perSecondText(rate: number | undefined): string {
  return rate === undefined ? "-" : `${rateText(rate)} a second`;
}

/** What a server counted, or why it does not tell that. */
interface Counted {
  readonly rates?: ReturnType<typeof ratesOf>;
  readonly p99?: number | undefined;
  readonly silentFor?: string;
}

/** By node_id. */
function countedBy({ nodes, silentNodes }: ListFiguresResponse): ReadonlyMap<string, Counted> {
  return new Map<string, Counted>([
    ...nodes.map((node): [string, Counted] => [
      node.nodeId,
      { rates: ratesOf(node), p99: node.latencyP99Micros },
    ]),
    ...silentNodes.map(({ nodeId, reason }): [string, Counted] => [
      nodeId,
      { silentFor: silenceWord(reason) },
    ]),
  ]);
}
