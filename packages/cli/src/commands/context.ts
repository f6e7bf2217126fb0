import { readFileSync } from "node:fs";
import path from "node:path";
import { invalidField } from "@idmint/core";
import type { Command } from "commander";
import {
  assertContextName,
  type Context,
  readContexts,
  unknownContext,
  writeContexts,
} from "../flags/contexts.ts";
import {
  addConnectionOptions,
  assertTokenText,
  connectionSources,
  DEFAULT_ADDRESS,
  type Settled,
} from "../flags/options.ts";
import { address } from "../flags/parse.ts";
import type { Io } from "../process/io.ts";
import { examplesText, printAnswer } from "../text/output.ts";
import { plain } from "../process/plain.ts";
import { columns } from "../text/table.ts";

/** Longest text that is read from standard input. */
const MAX_TOKEN = 8_192;

/** `idmint context …`: servers that have names. No server is called. */
export function addContextCommands(program: Command, io: Io): void {
  const group = program
    .command("context")
    .description("keep servers under names, with their certificates and tokens")
    .helpCommand(false);
  addAdd(group, io);
  addUse(group, io);
  addList(group, io);
  addShow(group, io);
  addRemove(group, io);
  addConnectionOptions(group);
}

function addAdd(group: Command, io: Io): void {
  const command = group
    .command("add")
    .description("keep a server under a name, in place of the one that had it")
    .argument("<name>", "name of the context")
    .addHelpText(
      "after",
      `
--address, --tls, --ca-file, --cert-file, --key-file and --token-file are kept. A token file is named, not copied. With
--token-file - the token is read from standard input and kept in the file of contexts, which is readable by you alone.
The first context that is added becomes the current one.
${examplesText([
  "idmint context add prod --address ids.internal:7600 --ca-file /etc/idmint/ca.pem --token-file ~/.idmint-token",
  "idmint token create ops --admin '*' --issue '*' | idmint context add prod --address ids.internal:7600 --tls --token-file -",
])}`,
    );
  command.action(async (name: string) => {
    assertContextName(name);
    const { typed } = connectionSources(command, { ...io.env, IDMINT_CONTEXT: "" }, undefined);
    const context = madeOf(typed);
    const { current, byName } = readContexts(io.env);
    const next = new Map([...byName, [name, context] as const]);
    const file = writeContexts(io.env, { current: current ?? name, byName: next });
    await printAnswer(command, io, {
      json: () => ({ name, file, current: current ?? name }),
      text: () => `kept ${name} in ${plain(file)}\n`,
    });
  });
}

function madeOf(typed: ReturnType<typeof connectionSources>["typed"]): Context {
  const { address: server, tls, caFile, certFile, keyFile, token, tokenFile } = typed;
  if (server === undefined) throw invalidField("--address", "is required", "FIELD_REQUIRED");
  if (token !== undefined) {
    const text =
      "is seen by other users of this machine; use --token-file, with - for standard input";
    throw invalidField("--token", text);
  }
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw invalidField("--cert-file", "needs --key-file, and the other way round");
  }
  return {
    address: address("--address")(server),
    ...(tls === true ? { tls } : {}),
    ...(caFile === undefined ? {} : { caFile: path.resolve(caFile) }),
    ...(certFile === undefined ? {} : { certFile: path.resolve(certFile) }),
    ...(keyFile === undefined ? {} : { keyFile: path.resolve(keyFile) }),
    ...(tokenFile === undefined ? {} : keptToken(tokenFile)),
  };
}

function keptToken(tokenFile: string): Pick<Context, "token" | "tokenFile"> {
  if (tokenFile !== "-") return { tokenFile: path.resolve(tokenFile) };
  const token = readFileSync(0, "utf8").slice(0, MAX_TOKEN).trim();
  assertTokenText(token, "standard input");
  return { token };
}

function addUse(group: Command, io: Io): void {
  const command = group
    .command("use")
    .description("call this server from now on, where nothing else names one")
    .argument("<name>", "name of the context")
    .addHelpText("after", examplesText(["idmint context use prod"]));
  command.action(async (name: string) => {
    const { byName } = readContexts(io.env);
    if (!byName.has(name)) throw unknownContext("name", byName);
    writeContexts(io.env, { current: name, byName });
    await printAnswer(command, io, {
      json: () => ({ current: name }),
      text: () => `${name} is the current context\n`,
    });
  });
}

function addList(group: Command, io: Io): void {
  const command = group
    .command("list")
    .description("list the contexts; tokens are not shown")
    .addHelpText("after", examplesText(["idmint context list"]));
  command.action(async () => {
    const { current, byName } = readContexts(io.env);
    const contexts = [...byName]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { token, ...its }]) => ({
        name,
        current: name === current,
        ...its,
        hasToken: token !== undefined || its.tokenFile !== undefined,
      }));
    const rows = contexts.map(({ name, current: isCurrent, address: server, hasToken, ...its }) => [
      isCurrent ? "*" : "",
      name,
      plain(server),
      its.tls === true || its.caFile !== undefined || its.certFile !== undefined ? "yes" : "no",
      hasToken ? "yes" : "no",
    ]);
    await printAnswer(command, io, {
      json: () => ({ contexts }),
      text: () => columns([["", "NAME", "ADDRESS", "TLS", "TOKEN"], ...rows]),
    });
  });
}

function addShow(group: Command, io: Io): void {
  const command = group
    .command("show")
    .description(
      "show how the next command would reach its server, and where each value comes from",
    )
    .argument("[name]", "name of a context (default: the one that would be used)")
    .addHelpText("after", examplesText(["idmint context show", "idmint context show prod --json"]));
  command.action(async (name: string | undefined) => {
    const { settled } = connectionSources(command, io.env, name);
    const shown = shownOf(settled);
    await printAnswer(command, io, {
      json: () => ({ settings: shown }),
      text: () =>
        columns([
          ["SETTING", "VALUE", "FROM"],
          ...shown.map(({ setting, value, source }) => [setting, plain(value), plain(source)]),
        ]),
    });
  });
}

const SETTINGS = [
  ["address", "address"],
  ["tls", "tls"],
  ["ca-file", "caFile"],
  ["cert-file", "certFile"],
  ["key-file", "keyFile"],
  ["token-file", "tokenFile"],
  ["token", "token"],
] as const;

function shownOf(
  settled: Settled,
): readonly { readonly setting: string; readonly value: string; readonly source: string }[] {
  const all: Settled = { address: { value: DEFAULT_ADDRESS, source: "default" }, ...settled };
  return SETTINGS.flatMap(([setting, name]) => {
    const found = all[name];
    if (found === undefined) return [];
    const value = name === "token" ? "(secret)" : found.value;
    return [{ setting, value, source: found.source }];
  });
}

function addRemove(group: Command, io: Io): void {
  const command = group
    .command("remove")
    .description("forget a context, and the token that is kept in it")
    .argument("<name>", "name of the context")
    .addHelpText("after", examplesText(["idmint context remove prod"]));
  command.action(async (name: string) => {
    const { current, byName } = readContexts(io.env);
    if (!byName.has(name)) throw unknownContext("name", byName);
    const left = new Map([...byName].filter(([other]) => other !== name));
    writeContexts(io.env, { current: current === name ? undefined : current, byName: left });
    await printAnswer(command, io, {
      json: () => ({ removed: name }),
      text: () => `removed ${name}\n`,
    });
  });
}
