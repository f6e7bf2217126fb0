import {
  GetNodeStatusResponse,
  type NodeState,
  nodeStateToJSON,
  type StoreBackend,
  storeBackendToJSON,
  StoreState,
  storeStateToJSON,
} from "@idmint/proto";
import {
  HealthCheckResponse_ServingStatus as ServingStatus,
  type HealthCheckResponse_ServingStatus,
} from "@idmint/proto/health";
import type { Command } from "commander";
import { type Send, withServer } from "../calls/connection.ts";
import { EXIT } from "../process/exit-code.ts";
import { CommandFailure, failureOf } from "../calls/failure.ts";
import type { Io } from "../process/io.ts";
import { addConnectionOptions } from "../flags/options.ts";
import { examplesText, printAnswer } from "../text/output.ts";
import { protoJson } from "../text/proto-json.ts";
import { plain } from "../process/plain.ts";
import { columns } from "../text/table.ts";
import { timeText } from "../text/kind-text.ts";

/** `idmint health` and `idmint status`: whether a server takes calls, and what it says about itself. */
export function addStatusCommands(program: Command, io: Io): void {
  addHealth(program, io);
  addStatus(program, io);
}

/** What a probe of a container runs: one question that needs no token, and an exit code. */
function addHealth(program: Command, io: Io): void {
  const command = program
    .command("health")
    .description("ask whether a server takes calls; exit code 5 when it does not; needs no token")
    .argument("[service]", "what grpc.health.v1 is asked about, such as liveness")
    .addHelpText(
      "after",
      examplesText([
        "idmint health",
        "idmint health liveness",
        "idmint health --timeout 2s --address ids-1.internal:7600 --ca-file /etc/idmint/ca.pem",
      ]),
    );
  addConnectionOptions(command);
  command.action(async (service: string = "") => {
    await withServer(command, io, async (send) => {
      const health = await healthOf(send, service);
      await printAnswer(command, io, { json: () => ({ health }), text: () => `${health}\n` });
      if (health !== "SERVING") throw unhealthy(`its health is ${health}`);
    });
  });
}

function addStatus(program: Command, io: Io): void {
  const command = program
    .command("status")
    .description("show the state of a server; exit code 5 when it is not well")
    .addHelpText(
      "after",
      examplesText([
        "idmint status",
        "idmint status --address ids-1.internal:7600 --json | jq -r .node.state",
      ]),
    );
  addConnectionOptions(command);
  command.action(async () => {
    await withServer(command, io, async (send) => {
      const health = await healthOf(send);
      const node = await send(({ nodes }) => nodes.getNodeStatus.bind(nodes), {});
      await printAnswer(command, io, {
        json: () => ({ health, node: protoJson(GetNodeStatusResponse, node) }),
        text: () => nodeText(health, node),
      });
      const illness = illnessOf(health, node);
      if (illness !== undefined) throw unhealthy(illness);
    });
  });
}

async function healthOf(send: Send, service = ""): Promise<string> {
  const { status } = await send(({ health }) => health.check.bind(health), { service });
  return servingWord(status);
}

/** The data is on stdout already. This only sets the exit code and says why. */
function unhealthy(illness: string): CommandFailure {
  const more = { exitCode: EXIT.unhealthy };
  return new CommandFailure(failureOf("FAILED_PRECONDITION", "UNHEALTHY", illness, more));
}

/** Why a server is not well, in words; undefined when it is. */
function illnessOf(
  health: string,
  { state, stateReason, store, stoppedTime }: GetNodeStatusResponse,
): string | undefined {
  const faults: string[] = [];
  if (health !== "SERVING") faults.push(`its health is ${health}`);
  if (stoppedTime !== undefined)
    faults.push(
      `an operator stopped all servers at ${timeText(stoppedTime)}; resume them with: idmint resume-issuing --all`,
    );
  else if (stateWord(state) !== "SERVING") {
    const why = stateReason === "" ? "" : `: ${plain(stateReason)}`;
    faults.push(`it is ${stateWord(state)}${why}`);
  }
  if (store?.state === StoreState.UNREACHABLE) faults.push("its store does not answer");
  if (store?.state === StoreState.FENCED)
    faults.push(`its store refuses: ${plain(store.fenceReason)}`);
  return faults.length === 0 ? undefined : faults.join("; ");
}

function servingWord(status: HealthCheckResponse_ServingStatus): string {
  const found = Object.entries(ServingStatus).find(([, value]) => value === status);
  return found?.[0] ?? "UNRECOGNIZED";
}

function stateWord(state: NodeState): string {
  return nodeStateToJSON(state).replace("NODE_STATE_", "");
}

function backendWord(backend: StoreBackend): string {
  return storeBackendToJSON(backend).replace("STORE_BACKEND_", "").toLowerCase();
}

function storeWord(state: StoreState): string {
  return storeStateToJSON(state).replace("STORE_STATE_", "").toLowerCase();
}

function nodeText(health: string, node: GetNodeStatusResponse): string {
  const { store } = node;
  return columns([
    ["health", health],
    ["state", stateWord(node.state)],
    ...(node.stateReason === "" ? [] : [["why", plain(node.stateReason)]]),
    ["node", plain(node.nodeId)],
    ["version", plain(node.version)],
    ["started", timeText(node.startTime)],
    ["store", store === undefined ? "unknown" : backendWord(store.backend)],
    ["store place", plain(store?.place ?? "unknown")],
    ["store state", store === undefined ? "unknown" : storeWord(store.state)],
    ["schema version", String(store?.schemaVersion ?? "unknown")],
    ...(store === undefined || store.fenceReason === ""
      ? []
      : [["store refuses", plain(store.fenceReason)]]),
    ...(node.stoppedTime === undefined ? [] : [["stopped", timeText(node.stoppedTime)]]),
    ["buffered tags", String(node.bufferedTags)],
    ["issued ids", String(node.issuedIds)],
    ["wasted ids", String(node.wastedIds)],
  ]);
}
