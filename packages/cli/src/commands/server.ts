import type { Serving } from "@idmint/server";
import type { Command } from "commander";
import { bannerText } from "../banner.ts";
import { addConfigFlags, configSources, loadServerConfig } from "../config-flags.ts";
import type { Io } from "../io.ts";
import { confirmDevStore } from "../migration.ts";
import { addOutputOptions, isJson } from "../options.ts";
import { examplesText } from "../output.ts";

/** `idmint start-dev` and `idmint serve`. Their flags are those of the server's table of options. */
export function addServerCommands(program: Command, io: Io): void {
  addStartDev(program, io);
  addServe(program, io);
}

function addStartDev(program: Command, io: Io): void {
  const command = program
    .command("start-dev")
    .description("run a server to try things out: makes a SQLite store and the tag demo")
    .addHelpText(
      "after",
      examplesText([
        "idmint start-dev",
        "idmint start-dev --grpc-address 127.0.0.1:7700 --http-address 127.0.0.1:7701",
      ]),
    );
  addOutputOptions(command);
  command.action(async () => {
    const { startDev } = await import("@idmint/server");
    await confirmDevStore(command, io);
    const { server, banner } = await startDev(configSources(command, io));
    if (!isJson(command)) io.err(bannerText(banner, server.grpcAddress, io.env));
    await runToTheEnd(command, io, server);
  });
}

function addServe(program: Command, io: Io): void {
  const command = program
    .command("serve")
    .description("run a server for production; its store must be there (idmint migrate)")
    .addHelpText(
      "after",
      `
Every flag is also an environment variable (--store-url is IDMINT_STORE_URL) and a key in the YAML file of --config.
A flag wins over its variable, and the variable wins over the file. docs/configuration.md lists all of them.
SIGTERM drains the server, which then exits with 0. A second signal ends it at once.
${examplesText([
  "idmint serve --store-url sqlite:/var/lib/idmint/idmint.db",
  "idmint serve --config /etc/idmint.yaml",
])}`,
    );
  addOutputOptions(command);
  command.action(async () => {
    const { startServing } = await import("@idmint/server");
    await runToTheEnd(command, io, await startServing(await loadServerConfig(command, io)));
  });
}

/** With --json says where it listens, for those who let it choose a port; then runs until it is told to stop. */
async function runToTheEnd(command: Command, io: Io, server: Serving): Promise<void> {
  const { runUntilSignal } = await import("@idmint/server");
  // From here on a signal is the server's to hear; one that came while it started must not be lost.
  const end = runUntilSignal(server);
  if (io.signal.aborted) {
    await server.close();
    return;
  }
  if (isJson(command)) {
    const { grpcAddress, httpAddress } = server;
    await io.out(`${JSON.stringify({ grpcAddress, httpAddress })}\n`);
  }
  await end;
}

/** Hook of the program: the flags of a command about servers are added when that command was typed. */
export async function addServerFlags(command: Command): Promise<void> {
  if (command.name() === "start-dev" || command.name() === "serve") {
    await addConfigFlags(command, "all");
  } else if (command.name() === "migrate") {
    await addConfigFlags(command, "store");
  }
}
