import { Node } from "@idmint/proto";
import type { Command } from "commander";
import { confirm, serverPlace } from "./confirm.ts";
import { withServer } from "../calls/connection.ts";
import type { Io } from "../process/io.ts";
import { timeText } from "../text/kind-text.ts";
import { addConnectionOptions } from "../flags/options.ts";
import { examplesText, printAnswer } from "../text/output.ts";
import { addPageOptions, listPages, type PageFlags, tellOfMore } from "../calls/paging.ts";
import { protoDurationText } from "../text/proto-duration.ts";
import { protoJson } from "../text/proto-json.ts";
import { columns, plain } from "../text/table.ts";

const MAX_LISTED = 1_000;

/** `idmint node …`: the servers on a store. */
export function addNodeCommands(program: Command, io: Io): void {
  const group = program
    .command("node")
    .description("look after the servers on the store")
    .helpCommand(false);
  addList(group, io);
  addForget(group, io);
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
      const { items: nodes, nextPageToken } = await listPages(flags, async (page) => {
        const answer = await send(
          (services) => services.nodes.listNodes.bind(services.nodes),
          page,
        );
        return { items: answer.nodes, nextPageToken: answer.nextPageToken };
      });
      await printAnswer(command, io, {
        json: () => ({ nodes: nodes.map((node) => protoJson(Node, node)), nextPageToken }),
        text: () => nodeTable(nodes),
      });
      tellOfMore(io, "nodes", nextPageToken);
    });
  });
}

function nodeTable(nodes: readonly Node[]): string {
  const rows = nodes.map((node) => [
    plain(node.nodeId),
    plain(node.instance),
    node.alive ? "alive" : "silent",
    plain(node.address),
    plain(node.zone),
    plain(node.version),
    timeText(node.heardTime),
    node.maxOffline === undefined ? "none" : protoDurationText(node.maxOffline),
  ]);
  const head = ["NODE", "INSTANCE", "STATE", "ADDRESS", "ZONE", "VERSION", "HEARD", "MAX OFFLINE"];
  return columns([head, ...rows]);
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
