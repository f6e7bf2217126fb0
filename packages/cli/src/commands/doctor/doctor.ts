import type { Timers } from "@idmint/core";
import type { Config, ConfigReading, ConfigSources } from "@idmint/server";
import type { Command } from "commander";
import { withServerAt } from "../../calls/connection.ts";
import { CommandFailure, failureOf } from "../../calls/failure.ts";
import { addConfigFlags, configSources } from "../../flags/config-flags.ts";
import {
  addRootOptions,
  type ConnectionSettings,
  connectionSettings,
  namesServer,
} from "../../flags/options.ts";
import { EXIT } from "../../process/exit-code.ts";
import type { Io } from "../../process/io.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { plain } from "../../process/plain.ts";
import { columns } from "../../text/table.ts";
import { type Check, type Report, runChecks } from "./checks.ts";
import { clockFindings, type ClockSeen } from "./clocks.ts";
import { fleetChecks } from "./fleet.ts";
import { machineChecks } from "./machine.ts";
import { reachChecks } from "./reach.ts";
import { serverChecks } from "./server.ts";
import { storeChecks } from "./stores.ts";

/** Without a configuration: the default of clock.max_offset. */
const MAX_OFFSET_MS = 5_000;

const timers: Timers = {
  after: (ms, then) => {
    const timer = setTimeout(then, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** `idmint doctor`: what is wrong with a server, its fleet, its store or its machine, and how to mend it. */
export function addDoctorCommand(program: Command, io: Io): void {
  const command = program
    .command("doctor")
    .description("look for what is wrong, and say how to mend it; exit code 5 when something is")
    .addHelpText(
      "after",
      `
With --address (or nothing) it looks at a server and its fleet, from outside. With the configuration of a server (its
flags, variables or --config) it looks at what only the server's machine sees: files, limits, store, Redis. With both it
looks at both. It changes nothing. Each line is ok, warn or fail, and the last two say what to do.
${examplesText([
  "idmint doctor --address ids.internal:7600 --ca-file /etc/idmint/ca.pem",
  "idmint doctor --config /etc/idmint.yaml",
  "idmint doctor --config /etc/idmint.yaml --address 127.0.0.1:7600 --json",
])}`,
    );
  addRootOptions(command);
  program.hook("preSubcommand", async (_program, called) => {
    if (called.name() === "doctor") await addConfigFlags(called, "all");
  });
  command.action(async () => {
    const sources = configSources(command, io);
    const isMachine = namesConfiguration(sources);
    const server =
      namesServer(command, io.env) || !isMachine ? connectionSettings(command, io.env) : undefined;
    const { timeoutMs } = connectionSettings(command, io.env);
    const report = await examine(server, isMachine ? sources : undefined, timeoutMs, io);
    await printAnswer(command, io, {
      json: () => ({ ok: countOf(report, "fail") === 0, ...report }),
      text: () => reportText(report),
    });
    const failed = countOf(report, "fail");
    if (failed === 0) return;
    const what = `${failed} of ${report.results.length} lines say fail`;
    const more = { exitCode: EXIT.unhealthy };
    throw new CommandFailure(failureOf("FAILED_PRECONDITION", "UNHEALTHY", what, more));
  });
}

/** Whether anything but the command line's own variables is set. */
function namesConfiguration({ flags = {}, env = {}, otherEnv = [] }: ConfigSources): boolean {
  const isOfServer = (name: string): boolean =>
    name.startsWith("IDMINT_") && env[name] !== undefined && !otherEnv.includes(name);
  return Object.keys(flags).length > 0 || Object.keys(env).some(isOfServer);
}

async function examine(
  server: ConnectionSettings | undefined,
  sources: ConfigSources | undefined,
  boundMs: number,
  io: Io,
): Promise<Report> {
  const clocks: ClockSeen[] = [];
  const machine: Check[] = [];
  let config: Config | undefined;
  if (sources !== undefined) {
    const reading = await readConfiguration(sources);
    config = reading.config;
    machine.push(...machineChecks(reading, sources));
    if (config !== undefined) machine.push(...(await storeChecks(config, boundMs, clocks)));
  }
  const run = (checks: readonly Check[]): Promise<Report> => runChecks(checks, { boundMs, timers });
  const clock = (uses: readonly string[]): Check => ({
    name: "clocks",
    uses,
    late: "",
    look: async () => clockFindings(clocks, config?.clockMaxOffsetMs ?? MAX_OFFSET_MS),
  });
  if (server === undefined) return run([...machine, clock(machine.map(({ name }) => name))]);
  return withServerAt(server, io, async (send) => {
    const reach = reachChecks(server);
    const needs = reach.map(({ name }) => name).slice(-1);
    const remote = [
      ...reach,
      ...serverChecks(send, server, needs),
      ...fleetChecks(send, server, io, clocks, needs),
    ];
    const all = [...remote, ...machine];
    return run([...all, clock(all.map(({ name }) => name))]);
  });
}

async function readConfiguration(sources: ConfigSources): Promise<ConfigReading> {
  const { readConfig } = await import("@idmint/server");
  return readConfig(sources);
}

function countOf({ results }: Report, wanted: string): number {
  return results.filter(({ status }) => status === wanted).length;
}

function reportText({ results, leftOut }: Report): string {
  const rows = results.flatMap(({ status, check, found, fix }) => [
    [status, check, plain(found)],
    ...(fix === undefined ? [] : [["", "", `→ ${plain(fix)}`]]),
  ]);
  const left = leftOut.map(({ check, needs }) => `${check} (needs ${needs})`);
  const end = left.length === 0 ? "" : `not looked at: ${left.join(", ")}\n`;
  return `${columns(rows)}${end}`;
}
