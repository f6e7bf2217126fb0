import {
  AlarmSeverity,
  type Alarm,
  type FigureRun,
  ListFiguresRequest,
  ListFiguresResponse,
  NodeFigures,
  SilenceReason,
  type SilentNode,
  type TagFigureRun,
  type TagFigures,
} from "@idmint/proto";
import type { ActiveAlarm } from "../../service/figures/active-alarm.ts";
import type { OwnFigures } from "../../service/figures/parts.ts";
import type * as Fleet from "../../service/figures/fleet.ts";
import type * as Domain from "../../service/figures/figures-state.ts";
import { type Figures, secondsOf } from "../../service/figures/figures.ts";
import { type Handler, handlerOf, type HandlerPorts } from "../method.ts";
import { NEEDS } from "../need.ts";
import { statusOf } from "./node-service.ts";

/** What one process told. */
export type ToldFigures = NodeFigures;
export type FleetOfFigures = Fleet.FleetFigures<NodeFigures>;

/** Answered while the server drains too: that is when people look. */
export function figuresHandler(
  own: OwnFigures,
  fleet: FleetOfFigures,
  ports: HandlerPorts,
): Handler {
  const tell = (asked: Fleet.FiguresRequest): NodeFigures => ownFigures(own, asked);
  return handlerOf(
    "idmint.v1.NodeService",
    {
      name: "ListFigures",
      request: ListFiguresRequest,
      response: ListFiguresResponse,
      need: NEEDS.observe,
      about: ({ tag }) => tag,
      call: async ({ tag, seconds, thisServer }, context) => {
        const request = { tag, seconds: secondsOf(seconds) };
        const answer = thisServer
          ? await fleet.ofServer(request, tell, context)
          : await fleet.ofAll(request, tell, context);
        return {
          nodes: [...answer.nodes],
          silentNodes: answer.silent.map(silentNodeOf),
          seconds: answer.seconds,
        };
      },
      whileDraining: true,
    },
    ports,
  );
}

/** What this process tells, for another process of the server. */
export function encodedFigures(own: OwnFigures, request: Fleet.FiguresRequest): Uint8Array {
  return NodeFigures.encode(ownFigures(own, request)).finish();
}

export function decodedFigures(told: Uint8Array): ToldFigures {
  return NodeFigures.decode(told);
}

/** What this process tells; nothing of others is waited for. */
function ownFigures(own: OwnFigures, { tag, seconds }: Fleet.FiguresRequest): NodeFigures {
  const { figures, node } = own;
  const { instance, zone } = node.info;
  const nobody = {
    nodeId: node.id,
    instance,
    zone,
    time: new Date(node.time()),
    aheadMillis: 0,
    wayMillis: 0,
    status: undefined,
    alarms: [],
    runs: [],
    tagFigures: undefined,
  };
  if (tag !== "") return { ...nobody, tagFigures: tagFiguresOf(figures, tag, seconds) };
  const offsets = own.clock.offsets;
  const latency = figures.latency(seconds);
  return {
    ...nobody,
    status: statusOf(node),
    storeOffsetMillis: offsets.store,
    peersOffsetMillis: offsets.peers,
    alarms: own.alarms().map(alarmOf),
    runs: figures.runs(seconds).map(runOf),
    latencyP50Micros: latency?.p50Micros,
    latencyP99Micros: latency?.p99Micros,
  };
}

/** What a list says where there is nothing to say. */
const NONE = -1;

function runOf(run: Domain.FigureRun): FigureRun {
  return {
    startTime: new Date(run.startSecond * 1_000),
    issuedIds: run.issued.map(BigInt),
    calls: [...run.calls],
    refusedCalls: [...run.refused],
    refusals: run.refusals.map(({ reason, calls }) => ({ reason, calls: [...calls] })),
    latencyP50Micros: run.latencies.map((latency) => latency?.p50Micros ?? NONE),
    latencyP99Micros: run.latencies.map((latency) => latency?.p99Micros ?? NONE),
    loopDelayMicros: run.loopDelayMicros.map(Math.round),
    loopBusyPermille: run.loopBusyPermille.map(Math.round),
    waitingCalls: [...run.waiting],
  };
}

function tagFiguresOf(figures: Figures, tag: string, seconds: number): TagFigures {
  const { present, runs } = figures.tag(tag, seconds);
  return {
    known: present !== undefined,
    epoch: present?.epoch ?? 0n,
    readyIds: BigInt(present?.ready ?? 0),
    heldIds: BigInt(present?.held ?? 0),
    waitingCalls: present?.waiting ?? 0,
    runs: runs.map(tagRunOf),
  };
}

function tagRunOf({ startSecond, issued, ready, remaining }: Domain.TagFigureRun): TagFigureRun {
  return {
    startTime: new Date(startSecond * 1_000),
    issuedIds: issued.map(BigInt),
    readyIds: ready.map(BigInt),
    remainingSeconds: remaining.map((seconds) => seconds ?? NONE),
  };
}

function alarmOf({ content, sinceMs, isLasting }: ActiveAlarm): Alarm {
  const { alarm, severity, summary, details } = content;
  return {
    alarm,
    severity: severity === "critical" ? AlarmSeverity.CRITICAL : AlarmSeverity.WARNING,
    summary,
    details: { ...details },
    startTime: new Date(sinceMs),
    lasting: isLasting,
  };
}

function silentNodeOf({ node: { row }, silence }: Fleet.SilentNode): SilentNode {
  const { id: nodeId, instance, zone, address } = row;
  const reason = SilenceReason[silence.reason];
  return { nodeId, instance, zone, address, reason, detail: silence.detail };
}
