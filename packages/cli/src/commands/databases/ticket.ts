import { type FieldViolation, IdmintError, MAX_ID } from "@idmint/core";
import { applyPlan, forgetLost, nameOfId, planTag, type TagPlan } from "@idmint/core/server";
import type { MigrationReport, PostgresTicketDatabase, TicketConfig } from "@idmint/server";
import { type Command, Option } from "commander";
import { addConfigFlags, loadServerConfig } from "../../flags/config-flags.ts";
import { confirm } from "../confirm.ts";
import { withServer } from "../../calls/connection.ts";
import { EXIT } from "../../process/exit-code.ts";
import { CommandFailure, failureOf } from "../../calls/failure.ts";
import type { Io } from "../../process/io.ts";
import { type AcceptFlags, oldPrimaryOption } from "./accept-flags.ts";
import { confirmSteps } from "./migration.ts";
import {
  addOutputOptions,
  addRootOptions,
  connectionSettings,
  namesServer,
} from "../../flags/options.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { wholeNumber } from "../../flags/parse.ts";
import { addServersWord, slotsIdsOf, statusOf, type TicketStatus } from "./ticket-status.ts";
import {
  forgetText,
  lostText,
  migrationsJson,
  migrationsText,
  planJson,
  planText,
  statusJson,
  statusText,
} from "./ticket-text.ts";

const URLS = "a=postgres://idmint@db-a.internal/ids,b=postgres://idmint@db-b.internal/ids";

/** `idmint ticket …`: manages the databases of ticket tags, without a server. */
export function addTicketCommands(program: Command, io: Io): void {
  const group = program
    .command("ticket")
    .description("manage the databases of tags of kind ticket")
    .helpCommand(false);
  group.hook("preSubcommand", (_group, command) => addConfigFlags(command, "ticket"));
  addMigrate(group, io);
  addStatus(group, io);
  addPlan(group, io);
  addApply(group, io);
  addForget(group, io);
  addAccept(group, io);
  for (const command of [group, ...group.commands]) {
    if (command.name() !== "status") addOutputOptions(command);
  }
}

/** The ticket databases that a command line means, and their names for people. */
interface MeantDatabases {
  readonly configs: readonly TicketConfig[];
  readonly place: string;
}

async function meantDatabases(command: Command, io: Io): Promise<MeantDatabases> {
  const { ticketConfigsOf, ticketPlace } = await import("@idmint/server");
  const config = await loadServerConfig(command, io);
  const configs = ticketConfigsOf(config);
  if (configs.length > 0) return { configs, place: ticketPlace(config) };
  const description = "is required: the ticket databases, as name=url, separated by commas";
  throw invalid("ticket.urls", description);
}

async function withDatabases(
  command: Command,
  io: Io,
  work: (databases: readonly PostgresTicketDatabase[]) => Promise<void>,
): Promise<void> {
  const { openTicketDatabases } = await import("@idmint/server");
  const { configs } = await meantDatabases(command, io);
  const databases = await openTicketDatabases(configs);
  try {
    await work(databases);
  } finally {
    await Promise.all(databases.map((database) => database.close()));
  }
}

function addMigrate(group: Command, io: Io): void {
  const command = group
    .command("migrate")
    .description("bring the schema of every ticket database up to this release")
    .addOption(new Option("--dry-run", "show what would be done, and change nothing"))
    .addHelpText(
      "after",
      `
A schema that exists already is changed only with --yes, or after you answer yes on a terminal.
${examplesText([`idmint ticket migrate --ticket-urls ${URLS}`])}`,
    );
  command.action(async ({ dryRun = false }: { dryRun?: boolean }) => {
    const { assertTicketDatabasesApart, migrateTicketDatabase } = await import("@idmint/server");
    const { configs, place } = await meantDatabases(command, io);
    await assertTicketDatabasesApart(configs);
    if (!dryRun) {
      const plan = (config: TicketConfig): Promise<MigrationReport> =>
        migrateTicketDatabase(config, { dryRun: true });
      await confirmSteps(
        command,
        io,
        `ticket databases: ${place}`,
        configs.map((config) => () => plan(config)),
      );
    }
    const reports = new Map<string, MigrationReport>();
    for (const config of configs) {
      reports.set(config.name, await migrateTicketDatabase(config, { dryRun }));
    }
    await printAnswer(command, io, {
      json: () => migrationsJson(reports, dryRun),
      text: () => migrationsText(reports, dryRun),
    });
  });
}

function addStatus(group: Command, io: Io): void {
  const command = group
    .command("status")
    .description("show which database has which slots; exit code 5 when one is away or went back")
    .addHelpText(
      "after",
      `
A server is asked too, if there is one: only servers know how far a database that went back had been.
${examplesText([
  "idmint ticket status --config /etc/idmint.yaml",
  "idmint ticket status --config /etc/idmint.yaml --address ids-1.internal:7600",
])}`,
    );
  addRootOptions(command);
  command.action(async () => {
    await withDatabases(command, io, async (databases) => {
      const status = await withServersWord(command, io, await statusOf(databases));
      await printAnswer(command, io, {
        json: () => statusJson(status),
        text: () => statusText(status),
      });
      const ill = status.databases.find(({ illness }) => illness !== "");
      if (ill === undefined) return;
      const text = `ticket database ${ill.name}: ${ill.illness}`;
      const more = { exitCode: EXIT.unhealthy };
      throw new CommandFailure(failureOf("FAILED_PRECONDITION", "UNHEALTHY", text, more));
    });
  });
}

/**
 * Adds what a server says. A server that the command line names has to answer; at the default address there may be
 * none.
 */
async function withServersWord(
  command: Command,
  io: Io,
  status: TicketStatus,
): Promise<TicketStatus> {
  const { address } = connectionSettings(command, io.env);
  let answer = status;
  try {
    await withServer(command, io, async (send) => {
      const node = await send(({ nodes }) => nodes.getNodeStatus.bind(nodes), {});
      answer = addServersWord(status, address, node.ticketDatabases);
    });
  } catch (thrown) {
    const isNoServer =
      thrown instanceof CommandFailure && thrown.failure.reason === "SERVER_UNAVAILABLE";
    if (!isNoServer || namesServer(command, io.env)) throw thrown;
  }
  return answer;
}

const toOption = (): Option =>
  new Option("--to <names>", "databases that get the slots, separated by commas")
    .argParser((text) => text.split(",").map((name) => name.trim()))
    .makeOptionMandatory();

function addPlan(group: Command, io: Io): void {
  const command = group
    .command("plan")
    .description("show the fewest moves that spread all slots evenly; moves nothing")
    .addOption(toOption())
    .addHelpText(
      "after",
      examplesText(["idmint ticket plan --to a,b,c --config /etc/idmint.yaml"]),
    );
  command.action(async ({ to }: { to: readonly string[] }) => {
    await withDatabases(command, io, async (databases) => {
      const plans = await plansOf(databases, to);
      await printAnswer(command, io, {
        json: () => plans.map(planJson),
        text: () => plans.map(planText).join(""),
      });
    });
  });
}

function addApply(group: Command, io: Io): void {
  const command = group
    .command("apply")
    .description("move slots until they are spread evenly; if it was interrupted, run it again")
    .addOption(toOption())
    .addHelpText(
      "after",
      `
Servers keep issuing ids. A slot is idle only while it moves. No id is repeated, even if the command is interrupted.
${examplesText(["idmint ticket apply --to a,b,c --config /etc/idmint.yaml"])}`,
    );
  command.action(async ({ to }: { to: readonly string[] }) => {
    await withDatabases(command, io, async (databases) => {
      let moved = 0;
      let waiting = 0;
      let lost = 0;
      let lostOf = "";
      const away = new Set<string>();
      for (const slotsId of await slotsIdsOf(databases, to)) {
        if (io.signal.aborted) throw interrupted(moved);
        const plan = await planTag(databases, slotsId, to);
        await applyPlan(databases, plan, () => moved++);
        waiting += plan.waiting;
        lost += plan.lost;
        lostOf += lostText(plan);
        for (const name of plan.away) away.add(name);
      }
      await printAnswer(command, io, {
        json: () => ({ moved, waiting, lost, away: [...away] }),
        text: () => `moved ${moved} slots\n${lostOf}`,
      });
      if (lost > 0) {
        const text = `${lost} slots are lost: no database has them, and all answered; see idmint ticket plan`;
        const more = { exitCode: EXIT.unhealthy };
        throw new CommandFailure(failureOf("FAILED_PRECONDITION", "UNHEALTHY", text, more));
      }
      if (waiting === 0) return;
      const text = `${waiting} slots wait for databases that did not answer: ${[...away].join(", ")}; run the command again when they are back`;
      throw new CommandFailure(failureOf("UNAVAILABLE", "STORE_UNAVAILABLE", text));
    });
  });
}

function addForget(group: Command, io: Io): void {
  const command = group
    .command("forget")
    .description("give up the slots of a tag that no database has; their ids are never issued")
    .argument("<tag>", "the tag's name, as in idmint ticket status")
    .addHelpText(
      "after",
      `
All databases of ticket.urls must answer. Put a database that you left out back in first: what it has of these slots is
given up too. With 30 of 60 slots lost, every second id is burnt, for good. The tag goes on with the others.
${examplesText(["idmint ticket forget orders --config /etc/idmint.yaml"])}`,
    );
  command.action(async (tag: string) => {
    const { place } = await meantDatabases(command, io);
    await withDatabases(command, io, async (databases) => {
      const names = databases.map(({ name }) => name);
      const ids = (await slotsIdsOf(databases, names)).filter((id) => nameOfId(id) === tag);
      if (ids.length === 0) throw invalid("tag", `has no slots in these databases: ${tag}`);
      const plans: TagPlan[] = [];
      for (const id of ids) plans.push(await planTag(databases, id, names));
      const lost = plans.reduce((sum, plan) => sum + plan.lost, 0);
      if (lost > 0) {
        const of = plans.map((plan) => `${plan.lost} of ${plan.slots}`).join(" and ");
        const effect = `gives up ${of} slots of ${tag} for good: none of their ids is ever issued`;
        await confirm(command, io, { place: `ticket databases: ${place}`, effect });
      }
      const given: { forgotten: number; slots: number }[] = [];
      for (const id of ids) given.push(await forgetLost(databases, id));
      await printAnswer(command, io, {
        json: () => ({ tag, forgotten: given.reduce((sum, { forgotten }) => sum + forgotten, 0) }),
        text: () => forgetText(tag, given),
      });
    });
  });
}

function addAccept(group: Command, io: Io): void {
  const command = group
    .command("accept")
    .description("accept a ticket database that went back, with its slots above everything issued")
    .argument("<name>", "its name in ticket.urls")
    .addOption(
      new Option(
        "--gap <ids>",
        "more ids than any tag can have been granted since the state that it went back to",
      )
        .argParser(wholeNumber("--gap", { min: 0n, max: MAX_ID }))
        .makeOptionMandatory(),
    )
    .addOption(oldPrimaryOption())
    .addHelpText(
      "after",
      `
All other databases must answer, because they know which slots this one gave away or took since then. An accept cannot
be undone, so it needs --yes or your answer on a terminal.
${examplesText(["idmint ticket accept b --gap 10000000 --config /etc/idmint.yaml --yes"])}`,
    );
  command.action(async (name: string, { gap, oldPrimaryIsStopped = false }: AcceptFlags) => {
    const { acceptTicketDatabase } = await import("@idmint/server");
    const { configs, place } = await meantDatabases(command, io);
    const effect = `accepts ticket database ${name} as it is and raises its slots by ${gap}`;
    await confirm(command, io, { place: `ticket databases: ${place}`, effect });
    const { slots } = await acceptTicketDatabase(configs, name, gap, { oldPrimaryIsStopped });
    await printAnswer(command, io, {
      json: () => ({ database: name, slots, gap: String(gap) }),
      text: () =>
        `accepted: ${slots} slots of ${name} continue ${gap} ids above the highest known id\n`,
    });
  });
}

async function plansOf(
  databases: readonly PostgresTicketDatabase[],
  to: readonly string[],
): Promise<readonly TagPlan[]> {
  const plans: TagPlan[] = [];
  for (const slotsId of await slotsIdsOf(databases, to)) {
    plans.push(await planTag(databases, slotsId, to));
  }
  return plans;
}

function interrupted(moved: number): IdmintError {
  return new IdmintError(
    "CALL_CANCELLED",
    `interrupted after ${moved} slots; run the command again to continue`,
  );
}

function invalid(field: string, description: string): IdmintError {
  const violations: readonly FieldViolation[] = [{ field, description }];
  return new IdmintError("INVALID_ARGUMENT", `${field} ${description}`, { violations });
}
