import { endOf, idsOfSpan, invalidField, type SnowflakeLayout } from "@idmint/core";
import { type Command, Option } from "commander";
import { withServer } from "../../calls/connection.ts";
import type { Io } from "../../process/io.ts";
import { printAnswer } from "../../text/output.ts";
import { time } from "../../flags/parse.ts";
import { layoutOf } from "../../flags/snowflake-layout.ts";
import { columns } from "../../text/table.ts";
import { readTag } from "../tag/tag-parts.ts";

/** `idmint id range`: which ids a span of time has. */
export function addRange(group: Command, io: Io): void {
  const command = group
    .command("range")
    .description("show the smallest and the largest possible id of a span of time")
    .argument("<tag>", "name of the tag, of kind snowflake or redis-snowflake")
    .addOption(
      new Option("--from <time>", "first moment, in UTC")
        .argParser(time("--from"))
        .makeOptionMandatory(),
    )
    .addOption(
      new Option("--to <time>", "last moment, in UTC, inclusive")
        .argParser(time("--to"))
        .makeOptionMandatory(),
    )
    .addHelpText(
      "after",
      `
Use this to find rows by the time in their ids. A span begins and ends with whole units of the tag's time. For a tag with
a format, these are the numbers behind its texts.

Examples:
  $ idmint id range trace --from 2026-11-21 --to 2026-11-21T23:59:59.999Z
  $ idmint id range trace --from 2026-11-21T08:00:00Z --to 2026-11-21T08:59:59.999Z --json
`,
    );
  command.action(async (name: string, { from, to }: { readonly from: Date; readonly to: Date }) => {
    if (to < from) throw invalidField("--to", "must not be before --from");
    await withServer(command, io, async (send) => {
      const { layout } = layoutOf(await readTag(send, name));
      assertInLife("--from", from, layout);
      assertInLife("--to", to, layout);
      const { min, max } = idsOfSpan(layout, from.getTime(), to.getTime());
      await printAnswer(command, io, {
        json: () => ({
          tag: name,
          from: from.toISOString(),
          to: to.toISOString(),
          smallest: String(min),
          largest: String(max),
        }),
        text: () =>
          columns([
            ["smallest", String(min)],
            ["largest", String(max)],
          ]),
      });
    });
  });
}

/** Throws INVALID_ARGUMENT for a time that no id of the layout has. */
export function assertInLife(flag: string, at: Date, layout: SnowflakeLayout): void {
  const [first, end] = [layout.timeOriginMs, endOf(layout)];
  if (at.getTime() >= first && at.getTime() < end) return;
  const life = `from ${new Date(first).toISOString()} to ${new Date(end - 1).toISOString()}`;
  throw invalidField(flag, `must be ${life}, what the tag's ids have room for`);
}
