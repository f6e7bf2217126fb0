import { invalidField } from "@idmint/core";
import { type Command, Option } from "commander";
import { withServer } from "../calls/connection.ts";
import { addConnectionOptions } from "../flags/options.ts";
import type { Io } from "../process/io.ts";
import { timeText } from "../text/kind-text.ts";
import { examplesText, printAnswer } from "../text/output.ts";
import { columns } from "../text/table.ts";
import { confirm, serverPlace } from "./confirm.ts";
import { effectJson, effectRows } from "./tag/tag-parts.ts";
import { tellOfLaggards, untilInEffect, type WaitFlag, withWait } from "./tag/tag-wait.ts";

const STOP = "idmint stop-issuing --all";
const RESUME = "idmint resume-issuing --all";

interface AllFlag {
  readonly all?: boolean;
}

/** `idmint stop-issuing` and `idmint resume-issuing`: all servers on a store at once. */
export function addIssuingCommands(program: Command, io: Io): void {
  addStop(program, io);
  addResume(program, io);
}

function addStop(program: Command, io: Io): void {
  const command = withAll(
    program
      .command("stop-issuing")
      .description("stop all servers on the store from issuing anything, until it is resumed")
      .addHelpText("after", examplesText([`${STOP} --yes`, `${STOP} --yes --wait`])),
  );
  withWait(command);
  addConnectionOptions(command);
  command.action(async (flags: AllFlag & WaitFlag) => {
    assertAll(flags, "one tag is stopped with: idmint tag pause NAME");
    const effect = "stops every server on the store from issuing ids and leases of any tag";
    await confirm(command, io, { place: serverPlace(command, io), effect, undoneBy: RESUME });
    await withServer(command, io, async (send) => {
      const made = await send(({ nodes }) => nodes.stopIssuing.bind(nodes), {
        validateOnly: false,
      });
      if (flags.wait !== true) tellOfLaggards(io, made);
      const answer =
        flags.wait === true
          ? await untilInEffect(io, async () =>
              send(({ nodes }) => nodes.getIssuing.bind(nodes), {}),
            )
          : made;
      const { stoppedTime } = made;
      await printAnswer(command, io, {
        json: () => ({ stoppedTime: stoppedTime?.toISOString(), ...effectJson(answer) }),
        text: () =>
          columns([
            ["stopped", timeText(stoppedTime)],
            ...effectRows(answer),
            ["resumed by", RESUME],
          ]),
      });
    });
  });
}

function addResume(program: Command, io: Io): void {
  const command = withAll(
    program
      .command("resume-issuing")
      .description("let all servers on the store issue again; paused tags stay paused")
      .addHelpText("after", examplesText([`${RESUME} --yes`])),
  );
  addConnectionOptions(command);
  command.action(async (flags: AllFlag) => {
    assertAll(flags, "one tag is resumed with: idmint tag resume NAME");
    const effect = "lets every server on the store issue again";
    await confirm(command, io, { place: serverPlace(command, io), effect, undoneBy: STOP });
    await withServer(command, io, async (send) => {
      await send(({ nodes }) => nodes.resumeIssuing.bind(nodes), { validateOnly: false });
      await printAnswer(command, io, {
        json: () => ({ resumed: true }),
        text: () => columns([["resumed", "all servers on the store"]]),
      });
    });
  });
}

/** Who types less must not hit everything. */
function withAll(command: Command): Command {
  return command.addOption(new Option("--all", "all servers and all tags; required"));
}

function assertAll({ all = false }: AllFlag, otherwise: string): void {
  if (!all)
    throw invalidField("--all", `is required: it is for all servers and tags; ${otherwise}`);
}
