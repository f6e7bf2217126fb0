// What the commands about tags have in common.
import type { Tag } from "@idmint/proto";
import { type Command, Option } from "commander";
import type { Send } from "../connection.ts";
import type { Io } from "../io.ts";
import { timeText } from "../kind-text.ts";
import { examplesText, printAnswer } from "../output.ts";
import { tagJson, tagText } from "../tag-text.ts";

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

/** Prints the tag that a server answered. */
export async function printTag(
  command: Command,
  io: Io,
  answer: { tag?: Tag | undefined; effectiveTime?: Date | undefined },
  more: Readonly<Record<string, boolean>> = {},
): Promise<void> {
  const { effectiveTime } = answer;
  const tag = answered(answer.tag);
  const time = effectiveTime === undefined ? {} : { effectiveTime: effectiveTime.toISOString() };
  const rows: [string, string][] = Object.entries(more).map(([name, value]) => [
    name,
    value ? "yes" : "no",
  ]);
  if (effectiveTime !== undefined) rows.push(["in effect everywhere", timeText(effectiveTime)]);
  await printAnswer(command, io, {
    json: () => ({ tag: tagJson(tag), ...more, ...time }),
    text: () => tagText(tag, rows),
  });
}
