import { AuditEvent, AuditKind } from "@idmint/proto";
import { invalidField } from "@idmint/core";
import { type Command, Option } from "commander";
import { withServer } from "../calls/connection.ts";
import { addPageOptions, listPages, type PageFlags, tellOfMore } from "../calls/paging.ts";
import { addConnectionOptions } from "../flags/options.ts";
import type { Io } from "../process/io.ts";
import { timeText } from "../text/kind-text.ts";
import { examplesText, printAnswer } from "../text/output.ts";
import { protoJson } from "../text/proto-json.ts";
import { plain } from "../process/plain.ts";
import { columns } from "../text/table.ts";

const MAX_LISTED = 1_000_000;

/** `idmint audit …`: who changed what, and who was refused. */
export function addAuditCommands(program: Command, io: Io): void {
  const group = program
    .command("audit")
    .description("see who changed what, and who was refused")
    .helpCommand(false);
  addList(group, io);
  addConnectionOptions(group);
}

interface ListFlags extends PageFlags {
  readonly kind?: "change" | "refusal";
  readonly principal?: string;
  readonly resource?: string;
  readonly outcome?: string;
  readonly since?: Date;
  readonly until?: Date;
}

function addList(group: Command, io: Io): void {
  const command = group
    .command("list")
    .description("list the events of the audit trail, newest first")
    .addOption(new Option("--kind <kind>", "only these events").choices(["change", "refusal"]))
    .addOption(new Option("--principal <name>", "only what this principal did"))
    .addOption(new Option("--resource <name>", "only what is about this, such as tag/orders"))
    .addOption(
      new Option(
        "--outcome <text>",
        "only events with this outcome: OK, or a reason such as PERMISSION_DENIED",
      ),
    )
    .addOption(
      new Option("--since <time>", "only events at or after this time").argParser(timeOf("since")),
    )
    .addOption(
      new Option("--until <time>", "only events before this time").argParser(timeOf("until")),
    )
    .addHelpText(
      "after",
      `
Times are as in 2026-11-22T10:31:04Z. What differed before and after a change is shown with --json. See docs/audit.md.
${examplesText([
  "idmint audit list --resource tag/orders",
  "idmint audit list --kind refusal --since 2026-11-22T00:00:00Z --json",
])}`,
    );
  addPageOptions(command, "events", { max: MAX_LISTED });
  command.action(async (flags: ListFlags) => {
    const { principal = "", resource = "", outcome = "", since: startTime, until: endTime } = flags;
    const kind = flags.kind === undefined ? AuditKind.UNSPECIFIED : KINDS[flags.kind];
    await withServer(command, io, async (send) => {
      const { items: events, nextPageToken } = await listPages(flags, async (page) => {
        const request = { principal, resource, outcome, startTime, endTime, kind, ...page };
        const answer = await send(({ audit }) => audit.listAuditEvents.bind(audit), request);
        return { items: answer.events, nextPageToken: answer.nextPageToken };
      });
      await printAnswer(command, io, {
        json: () => ({
          events: events.map((event) => protoJson(AuditEvent, event)),
          nextPageToken,
        }),
        text: () => table(events),
      });
      tellOfMore(io, "events", nextPageToken);
    });
  });
}

const KINDS = { change: AuditKind.CHANGE, refusal: AuditKind.REFUSAL } as const;

function timeOf(flag: string): (text: string) => Date {
  return (text) => {
    const time = new Date(text);
    const isTime = /^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(time.getTime());
    if (isTime) return time;
    throw invalidField(`--${flag}`, `must be a time such as 2026-11-22T10:31:04Z, got ${text}`);
  };
}

function table(events: readonly AuditEvent[]): string {
  const rows = events.map((event) => [
    timeText(event.time),
    plain(event.principal === "" ? "(anonymous)" : event.principal),
    plain(event.proof),
    plain(event.peer),
    plain(event.method.split("/").at(-1) ?? ""),
    plain(event.resource),
    plain(event.omittedCount === 0n ? event.outcome : `${event.outcome} ×${event.omittedCount}`),
  ]);
  const head = ["TIME", "PRINCIPAL", "PROOF", "FROM", "METHOD", "RESOURCE", "OUTCOME"];
  return columns([head, ...rows]);
}
