import type { Script, Serving } from "@idmint/server";
import type { Command } from "commander";
import { bannerText } from "../text/banner.ts";
import { addConfigFlags, configSources, loadServerConfig } from "../flags/config-flags.ts";
import type { Io } from "../process/io.ts";
import { confirmDevStore } from "./databases/migration.ts";
import { addOutputOptions, isJson } from "../flags/options.ts";
import { examplesText } from "../text/output.ts";

const COMMANDS = new Set(["start-dev", "serve"]);

/** `idmint start-dev` and `idmint serve`. Their flags come from the server's table of options. */
export function addServerCommands(program: Command, io: Io): void {
  addStartDev(program, io);
  addServe(program, io);
  program.hook("preSubcommand", async (_program, command) => {
    if (COMMANDS.has(command.name())) await addConfigFlags(command, "all");
  });
}

function addStartDev(program: Command, io: Io): void {
  const command = program
    .command("start-dev")
    .description("run a server to try things out; creates a SQLite store and the tag demo")
    .addHelpText(
      "after",
      examplesText([
        "idmint start-dev",
        "idmint start-dev --grpc-address 127.0.0.1:7700 --http-address 127.0.0.1:7701",
      ]),
    );
  addOutputOptions(command);
  command.action(async () => {
    const { startDev, watchScript } = await import("@idmint/server");
    // This comes before anything that takes time: a script may end while its server starts.
    const script = watchScript();
    await confirmDevStore(command, io);
    const { server, banner } = await startDev(configSources(command, io), {
      signal: io.signal,
    });
    if (!isJson(command)) io.err(bannerText(banner, server.grpcAddress, io));
    await runToTheEnd(command, io, server, script);
  });
}

function addServe(program: Command, io: Io): void {
  const command = program
    .command("serve")
    .description("run a server for production; create its store first with idmint migrate")
    .addHelpText(
      "after",
      `
Every flag is also an environment variable (--store-url is IDMINT_STORE_URL) and a key in the YAML file of --config.
A flag wins over its variable, and the variable wins over the file. docs/configuration.md lists all of them.
SIGTERM drains the server, which then exits with 0. It answers for --drain-delay first, so that callers go elsewhere; a
second signal ends that, and one more ends the server at once. A server that a script of npm or pnpm started also
drains when that script ends, unless it has a session of its own (setsid).
${examplesText([
  "idmint serve --store-url sqlite:/var/lib/idmint/idmint.db",
  "idmint serve --config /etc/idmint.yaml",
])}`,
    );
  addOutputOptions(command);
  command.action(async () => {
    const { startServing, watchScript } = await import("@idmint/server");
    const script = watchScript();
    const server = await startServing(await loadServerConfig(command, io), io.signal);
    await runToTheEnd(command, io, server, script);
  });
}

/** Prints the addresses with --json, for callers that let the server choose a port. Then runs until it is told to stop. */
async function runToTheEnd(
  command: Command,
  io: Io,
  server: Serving,
  script: Script | undefined,
): Promise<void> {
  const { runUntilSignal } = await import("@idmint/server");
  const { omitStacks } = await import("@idmint/core/server");
  omitStacks();
  // From here on the server handles signals. One that came while it started must not be lost.
  const end = runUntilSignal(server, script);
  if (io.signal.aborted) {
    await server.close();
    return;
  }
  if (isJson(command)) {
    const { grpcAddress, adminAddress, httpAddress } = server;
    await io.out(`${JSON.stringify({ grpcAddress, adminAddress, httpAddress })}\n`);
  }
  await end;
}
