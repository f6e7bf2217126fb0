import type { CallTimes } from "../call-times.ts";
import type { NodeService } from "../node.ts";
import type { ClockWatch } from "../worker-ids/clock-watch.ts";
import type { ActiveAlarm } from "./active-alarm.ts";
import { Figures, type FiguresPorts } from "./figures.ts";
import { FleetFigures, type FleetPorts } from "./fleet.ts";

/** What a server's figures are made of besides its services. */
export interface FiguresParts<Told>
  extends Pick<FiguresPorts, "readLoop">, Pick<FleetPorts<Told>, "peers" | "siblings"> {
  readonly callTimes: CallTimes | undefined;
  readonly alarms: () => readonly ActiveAlarm[];
}

/** What this process tells of itself. */
export interface OwnFigures {
  readonly figures: Figures;
  readonly node: NodeService;
  readonly clock: Pick<ClockWatch, "offsets">;
  readonly alarms: () => readonly ActiveAlarm[];
}

/** For a server that asks no others, and whose calls are not timed. */
const ALONE: FiguresParts<never> = {
  readLoop: () => ({ max: 0, utilization: 0 }),
  callTimes: undefined,
  alarms: () => [],
  peers: {
    ask: async () => {
      const silence = { reason: "NO_ANSWER", detail: "this server asks no others" } as const;
      return { type: "silent", silence };
    },
  },
  siblings: async () => [],
};

export function createFigures<Told extends { readonly nodeId: string }>(
  ports: Omit<FiguresPorts, "callTimes" | "readLoop"> &
    Pick<FleetPorts<Told>, "nodes"> & {
      readonly node: NodeService;
      readonly clocks: { readonly watch: ClockWatch };
    },
  parts: FiguresParts<Told> = ALONE,
): { readonly own: OwnFigures; readonly fleet: FleetFigures<Told> } {
  const { node, clocks } = ports;
  const { alarms } = parts;
  const own = { figures: new Figures({ ...ports, ...parts }), node, clock: clocks.watch, alarms };
  return { own, fleet: new FleetFigures({ ...ports, ...parts }) };
}
