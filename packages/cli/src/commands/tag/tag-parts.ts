// What the commands about tags have in common.
import { HELD_FOR_EVER_MS } from "@idmint/core/kinds";
import { memoryMsOf } from "@idmint/core/server";
import { LaggingNode, type Tag } from "@idmint/proto";
import { settingsOfProto } from "@idmint/server/kind-values";
import { type Command, Option } from "commander";
import type { Send } from "../../calls/connection.ts";
import type { Io } from "../../process/io.ts";
import { timeText } from "../../text/kind-text.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { protoJson } from "../../text/proto-json.ts";
import { plain } from "../../process/plain.ts";
import { tagJson, tagText } from "../../text/tag-text.ts";

/** --etag, as typed. */
export interface EtagFlag {
  readonly etag?: string;
}

/** A command of a group, with examples in its help. */
export function leaf(
  group: Command,
  name: string,
  text: string,
  examples: readonly string[],
): Command {
  return group.command(name).description(text).addHelpText("after", examplesText(examples));
}

/** The argument that names a tag. */
export function named(command: Command): Command {
  return command.argument("<name>", "name of the tag");
}

/** --etag, for a command that changes a tag. */
export function withEtag(command: Command): Command {
  const text = "fail with ETAG_MISMATCH if the tag has changed since it had this etag";
  return command.addOption(new Option("--etag <etag>", text));
}

/** The tag of a name, as a server answers it. */
export async function readTag(send: Send, name: string): Promise<Tag> {
  const { tag } = await send(({ tags }) => tags.getTag.bind(tags), { name });
  return answered(tag);
}

function answered(tag: Tag | undefined): Tag {
  if (tag === undefined) throw new Error("the server answered without a tag");
  return tag;
}

/** By when a change is in effect, as a server answers it. */
interface EffectAnswer {
  readonly effectiveTime?: Date | undefined;
  /** Absent for changes that end nothing. */
  readonly laggingNodes?: readonly LaggingNode[];
  readonly laggingNodeCount?: number;
}

/** What a server answers about a changed tag. */
export interface TagAnswer extends EffectAnswer {
  readonly tag?: Tag | undefined;
}

/** Prints the tag that a server answered. */
export async function printTag(
  command: Command,
  io: Io,
  answer: TagAnswer,
  more: Readonly<Record<string, boolean>> = {},
): Promise<void> {
  const tag = answered(answer.tag);
  const rows: [string, string][] = Object.entries(more).map(([name, value]) => [
    name,
    value ? "yes" : "no",
  ]);
  await printAnswer(command, io, {
    json: () => ({ tag: tagJson(tag), ...more, ...effectJson(answer) }),
    text: () => tagText(tag, [...rows, ...effectRows(answer)]),
  });
}

export function effectJson({
  effectiveTime,
  laggingNodes,
  laggingNodeCount,
}: EffectAnswer): Readonly<Record<string, unknown>> {
  const time = effectiveTime === undefined ? {} : { effectiveTime: effectiveTime.toISOString() };
  if (laggingNodes === undefined || laggingNodes.length === 0) return time;
  const nodes = laggingNodes.map((node) => protoJson(LaggingNode, node));
  return { ...time, laggingNodes: nodes, laggingNodeCount };
}

export function effectRows({
  tag,
  effectiveTime,
  laggingNodes = [],
  laggingNodeCount,
}: TagAnswer): [string, string][] {
  // A change that ends nothing.
  if (laggingNodeCount === undefined) return [];
  const rows: [string, string][] = [];
  const isKnown = effectiveTime !== undefined;
  if (isKnown) {
    const text = timeText(effectiveTime);
    rows.push(["in effect everywhere", laggingNodeCount === 0 ? text : `${text} at the latest`]);
  } else if (laggingNodeCount > 0) {
    rows.push(["in effect everywhere", "nobody knows: see the servers that lag"]);
  } else if (keepsForEver(tag)) {
    rows.push(["in effect everywhere", "nobody knows: Tinyid's clients keep what they hold"]);
  }
  for (const node of laggingNodes) rows.push(["lagging server", laggardText(node)]);
  const unnamed = laggingNodeCount - laggingNodes.length;
  if (unnamed > 0) rows.push(["lagging server", `and ${unnamed} more`]);
  return rows;
}

/** Whether callers may keep its segments until these are used up. */
function keepsForEver(tag: Tag | undefined): boolean {
  return tag?.kind !== undefined && memoryMsOf(settingsOfProto(tag.kind)) === HELD_FOR_EVER_MS;
}

/** A server that has not confirmed a change, and until when it may ignore it. */
export function laggardText({ nodeId, instance, database, stopTime }: LaggingNode): string {
  const where = database === "" ? "" : ` in database ${plain(database)}`;
  const until =
    stopTime === undefined
      ? "never stops by itself (node.max_offline is none)"
      : `stops by ${timeText(stopTime)}`;
  return `${plain(instance)} (${plain(nodeId)})${where}, ${until}`;
}
