import { KINDS } from "@idmint/core/kinds";
import { type DecodeIdRequest, DecodeIdResponse, type Tag } from "@idmint/proto";
import { kindNameOf } from "@idmint/server/kind-values";
import type { Command } from "commander";
import { withServer } from "../../calls/connection.ts";
import type { Io } from "../../process/io.ts";
import { printAnswer } from "../../text/output.ts";
import { protoJson } from "../../text/proto-json.ts";
import { plain } from "../../process/plain.ts";
import { columns } from "../../text/table.ts";

/** `idmint id decode`: what an id is made of. */
export function addDecode(group: Command, io: Io): void {
  const command = group
    .command("decode")
    .description("decode an id; does not check whether it was issued")
    .argument("<tag>", "name of the tag")
    .argument("<id>", "the id, a number or a text, as the tag issues it")
    .addHelpText(
      "after",
      `
Examples:
  $ idmint id decode invoices INV000000018
  $ idmint id decode messages 7284729384729 --json
`,
    );
  command.action(async (tag: string, id: string) => {
    await withServer(command, io, async (send) => {
      const { tag: found } = await send(({ tags }) => tags.getTag.bind(tags), { name: tag });
      const isText = found !== undefined && answersText(found);
      const request = { tag, value: isText ? text(id) : number(id) };
      const answer = await send(({ ids }) => ids.decodeId.bind(ids), request);
      await printAnswer(command, io, {
        json: () => protoJson(DecodeIdResponse, answer),
        text: () => columns(rows(answer)),
      });
    });
  });
}

/** Whether the ids of a tag are text, and no numbers. */
export function answersText({ kind, format }: Tag): boolean {
  const isTextKind = kind !== undefined && KINDS[kindNameOf(kind)].ids === "text";
  return format !== undefined || isTextKind;
}

export function text(value: string): DecodeIdRequest["value"] {
  return { $case: "text", value };
}

/** An id that is no number is sent as text, so that the server says what the tag's ids are. */
export function number(value: string): DecodeIdRequest["value"] {
  return /^\d{1,18}$/.test(value) || (/^\d{19}$/.test(value) && BigInt(value) < 2n ** 63n)
    ? { $case: "id", value: BigInt(value) }
    : text(value);
}

function rows({ id, time, snowflake, parts, uuidVersion, keyId }: DecodeIdResponse): string[][] {
  const found: string[][] = [];
  if (id !== 0n) found.push(["number", String(id)]);
  if (uuidVersion !== 0) found.push(["uuid version", String(uuidVersion)]);
  if (keyId !== 0) found.push(["key", String(keyId)]);
  if (time !== undefined) found.push(["time", time.toISOString()]);
  if (snowflake !== undefined) {
    const { ticks, extension, dataCenter, worker, sequence } = snowflake;
    found.push(
      ["ticks", String(ticks)],
      ["extension", String(extension)],
      ["data center", String(dataCenter)],
      ["worker", String(worker)],
      ["sequence", String(sequence)],
    );
  }
  for (const { name, value } of parts) found.push([name === "" ? "text" : name, plain(value)]);
  return found;
}
