import { type DrainNodeResponse, Node } from "@idmint/proto";
import { type Command, Option } from "commander";
import { confirm, serverPlace } from "./confirm.ts";
import { type Send, withServer } from "../calls/connection.ts";
import type { Io } from "../process/io.ts";
import { timeText } from "../text/kind-text.ts";
import { addConnectionOptions } from "../flags/options.ts";
import { smallNumber } from "../flags/parse.ts";
import { examplesText, printAnswer } from "../text/output.ts";
import { addPageOptions, listPages, type PageFlags, tellOfMore } from "../calls/paging.ts";
import { protoDurationText } from "../text/proto-duration.ts";
import { protoJson } from "../text/proto-json.ts";
import { plain } from "../process/plain.ts";
import { columns } from "../text/table.ts";

const MAX_LISTED = 1_000;
/** Most servers that one line names. */
const MAX_NAMED = 3;

/** `idmint node …`: the servers on a store. */
export function addNodeCommands(program: Command, io: Io): void {
  const group = program
    .command("node")
    .description("look after the servers on the store")
    .helpCommand(false);
  addList(group, io);
  addForget(group, io);
  addWeight(group, io);
  addDrain(group, io);
  addUndrain(group, io);
  addConnectionOptions(group);
}

function addList(group: Command, io: Io): void {
  const command = group
    .command("list")
    .description("list the servers on the store, and when each was last heard of")
    .addHelpText(
      "after",
      examplesText([
        "idmint node list",
        "idmint node list --json | jq '.nodes[] | select(.alive | not)'",
      ]),
    );
  addPageOptions(command, "nodes", { max: MAX_LISTED });
  command.action(async (flags: PageFlags) => {
    await withServer(command, io, async (send) => {
      const { items: nodes, nextPageToken } = await listNodes(send, flags);
      await printAnswer(command, io, {
        json: () => ({ nodes: nodes.map((node) => protoJson(Node, node)), nextPageToken }),
        text: () => nodeTable(nodes),
      });
      tellOfMore(io, "nodes", nextPageToken);
    });
  });
}

function listNodes(send: Send, flags: PageFlags): ReturnType<typeof listPages<Node>> {
  return listPages(flags, async (page) => {
    const answer = await send(({ nodes }) => nodes.listNodes.bind(nodes), page);
    return { items: answer.nodes, nextPageToken: answer.nextPageToken };
  });
}

function nodeTable(nodes: readonly Node[]): string {
  const rows = nodes.map((node) => [
    plain(node.nodeId),
    plain(node.instance),
    stateText(node),
    String(node.weight),
    plain(node.address),
    plain(node.zone),
    plain(node.version),
    timeText(node.heardTime),
    node.maxOffline === undefined ? "none" : protoDurationText(node.maxOffline),
  ]);
  const head = [
    "NODE",
    "INSTANCE",
    "STATE",
    "WEIGHT",
    "ADDRESS",
    "ZONE",
    "VERSION",
    "HEARD",
    "MAX OFFLINE",
  ];
  return columns([head, ...rows]);
}

function stateText({ alive, draining }: Node): string {
  const state = alive ? "alive" : "silent";
  return draining ? `${state}, drained` : state;
}

function addForget(group: Command, io: Io): void {
  const command = group
    .command("forget")
    .description("remove a server that died from the list, so that no change waits for it")
    .argument("<node>", "its NODE, as idmint node list shows it")
    .addHelpText(
      "after",
      `
Only for a process that has ended. If it is merely stopped, frozen or cut off from the store, it may still issue ids that a
change has ended, and --wait would not wait for it.
${examplesText(["idmint node forget kJ3v0mX2b8sQh1nYw5ZtRA --yes"])}`,
    );
  command.action(async (node: string) => {
    const effect = `takes server ${node} out of the list, so that changes are in effect without it`;
    await confirm(command, io, { place: serverPlace(command, io), effect });
    await withServer(command, io, async (send) => {
      await send(({ nodes }) => nodes.forgetNode.bind(nodes), {
        nodeId: node,
        validateOnly: false,
      });
      await printAnswer(command, io, {
        json: () => ({ nodeId: node, forgotten: true }),
        text: () => columns([["forgotten", plain(node)]]),
      });
    });
  });
}

const NODE = "its NODE or INSTANCE, as idmint node list shows them";

interface TrafficFlags {
  readonly dryRun?: boolean;
}

/** A command that changes how much of the load a server gets. */
function trafficCommand(
  group: Command,
  name: string,
  description: string,
  ...examples: string[]
): Command {
  return group
    .command(name)
    .description(description)
    .argument("<node>", NODE)
    .addOption(new Option("--dry-run", "check everything and change nothing"))
    .addHelpText("after", examplesText(examples));
}

function addWeight(group: Command, io: Io): void {
  const description = "set a server's share of the load, 0 to 1000; 100 is usual, 0 is none";
  const command = trafficCommand(group, "weight", description, "idmint node weight host-1:7600 10");
  command.argument("<weight>", "the weight", smallNumber("<weight>", { min: 0, max: 1_000 }));
  command.action(async (node: string, weight: number, { dryRun = false }: TrafficFlags) => {
    await withServer(command, io, async (send) => {
      const request = { node, weight, validateOnly: dryRun };
      const answer = await send(({ nodes }) => nodes.setNodeWeight.bind(nodes), request);
      await printTraffic(command, io, answer, dryRun);
    });
  });
}

function addDrain(group: Command, io: Io): void {
  const command = trafficCommand(
    group,
    "drain",
    "send callers away from a server, which goes on running",
    "idmint node drain host-1:7600",
  );
  command.action(async (node: string, { dryRun = false }: TrafficFlags) => {
    await withServer(command, io, async (send) => {
      const drain = (validateOnly: boolean): Promise<DrainNodeResponse> =>
        send(({ nodes }) => nodes.drainNode.bind(nodes), { node, validateOnly });
      const tried = await drain(true);
      if (!dryRun && (await isLast(send, tried.nodes))) {
        const effect = "drains the last server that takes calls, and nobody gets an id";
        const undoneBy = `idmint node undrain ${node}`;
        await confirm(command, io, { place: serverPlace(command, io), effect, undoneBy });
      }
      await printTraffic(command, io, dryRun ? tried : await drain(false), dryRun);
    });
  });
}

function addUndrain(group: Command, io: Io): void {
  const command = trafficCommand(
    group,
    "undrain",
    "let a drained server take calls again",
    "idmint node undrain host-1:7600",
  );
  command.action(async (node: string, { dryRun = false }: TrafficFlags) => {
    await withServer(command, io, async (send) => {
      const request = { node, validateOnly: dryRun };
      const answer = await send(({ nodes }) => nodes.undrainNode.bind(nodes), request);
      await printTraffic(command, io, answer, dryRun);
    });
  });
}

/** Whether no other server is left that lives and is not drained. */
async function isLast(send: Send, drained: readonly Node[]): Promise<boolean> {
  const ids = new Set(drained.map(({ nodeId }) => nodeId));
  const { items } = await listNodes(send, {});
  return !items.some(({ nodeId, alive, draining }) => alive && !draining && !ids.has(nodeId));
}

async function printTraffic(
  command: Command,
  io: Io,
  { nodes, laggingNodes, laggingNodeCount }: DrainNodeResponse,
  isDry: boolean,
): Promise<void> {
  await printAnswer(command, io, {
    json: () => ({
      nodes: nodes.map((node) => protoJson(Node, node)),
      laggingNodes: laggingNodes.map((node) => protoJson(Node, node)),
      laggingNodeCount,
    }),
    text: () => nodeTable(nodes),
  });
  if (isDry) io.err("idmint: dry run, nothing was changed\n");
  if (laggingNodeCount === 0) return;
  const shown = laggingNodes.slice(0, MAX_NAMED).map(({ instance }) => plain(instance));
  const more = laggingNodeCount - shown.length;
  const all = more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
  io.err(`idmint: the store has it; these servers have not said yet that they follow: ${all}\n`);
}
