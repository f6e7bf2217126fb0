import type { Command } from "commander";
import type { Io } from "../process/io.ts";
import { addOutputOptions } from "../flags/options.ts";
import { examplesText, printAnswer } from "../text/output.ts";
import { cliVersion } from "../process/package-version.ts";

/** `idmint version` and `idmint --version`. */
export function addVersion(program: Command, io: Io): void {
  program.version(cliVersion(), "-V, --version", "print the version of this command");
  const command = program
    .command("version")
    .description("print the versions of this command and of Node")
    .addHelpText("after", examplesText(["idmint version", "idmint version --json"]));
  addOutputOptions(command);
  command.action(async () => {
    await printAnswer(command, io, {
      json: () => ({ version: cliVersion(), node: process.versions.node }),
      text: () => `idmint ${cliVersion()} (Node ${process.versions.node})\n`,
    });
  });
}
