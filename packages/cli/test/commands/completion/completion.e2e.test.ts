import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { shellProgram } from "@idmint/testkit/shells";
import { expect, onTestFinished, test } from "vitest";
import { devServer } from "../../dev-server.ts";
import { temporaryFolder } from "../../spawn.ts";
import { installIn, onTerminal, type Terminal } from "../../terminal.ts";

const server = devServer();

// The others are not on every machine, and one shell shows that words and answers pass through.
const SHELLS =
  process.env["IDMINT_LONG"] === "1" ? (["bash", "zsh", "fish"] as const) : (["bash"] as const);

/** How each is started without anybody's settings, and what makes it list what is ambiguous. */
const START = {
  bash: `--norc --noprofile -i`,
  zsh: `-f -i`,
  fish: `--no-config -i`,
} as const;
const PREPARE = {
  bash: `bind 'set show-all-if-ambiguous on'; bind 'set page-completions off'; source <(idmint completion bash)`,
  zsh: `autoload -U compinit && compinit -u -D && source <(idmint completion zsh)`,
  fish: `idmint completion fish | source`,
} as const;

async function shellWith(shell: (typeof SHELLS)[number]): Promise<Terminal> {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  installIn(folder);
  mkdirSync(path.join(folder, "files"));
  writeFileSync(path.join(folder, "files", "authority-of-ours.pem"), "none");
  const { command, env } = shellProgram(shell);
  const terminal = onTerminal(`'${command}' ${START[shell]}`, {
    ...env,
    HOME: folder,
    PATH: `${folder}:${process.env["PATH"] ?? ""}`,
    IDMINT_ADDRESS: server.grpcAddress,
  });
  onTestFinished(terminal.end);
  terminal.type(`cd '${path.join(folder, "files")}'\r${PREPARE[shell]}\rprintf 'rea%s\\n' dy\r`);
  await terminal.until(/^ready/m);
  return terminal;
}

/** Types a line with tabs in it, and what it printed when it ran. A server on a busy machine may need another try. */
async function typed(terminal: Terminal, line: string, wanted: RegExp): Promise<void> {
  for (let turn = 1; ; turn += 1) {
    const from = terminal.screen().length;
    terminal.type(`${line}\rprintf 'en%s\\n' d${turn}\r`);
    await terminal.until(new RegExp(`^end${turn}`, "m"), from);
    const text = terminal.screen().slice(from);
    if (wanted.test(text)) return;
    if (turn === 5) throw new Error(`no ${wanted} in:\n${text}`);
  }
}

test.each(SHELLS)(
  "a %s completes commands, flags, kinds, files, and tags of the server",
  async (shell) => {
    await server.out("tag", "create", "shop:orders-of-a-day", "--yes");
    const terminal = await shellWith(shell);
    // A command, a kind after a space and one after "=": what was completed runs.
    await typed(terminal, "idmint versi\t--js\t", /"version":"/);
    await typed(
      terminal,
      "idmint tag cr\tcodes --kin\tobject\t--json",
      /"name":"codes","objectId"|"objectId":/,
    );
    await typed(terminal, "idmint tag create traces --kind=uui\t --version 7 --json", /"uuid":/);
    // The name of a tag, with a colon in it, at which bash splits words.
    await typed(terminal, "idmint id next shop:or\t", /^\d+\r?$/m);
    await typed(terminal, "idmint id next sh\t", /^\d+\r?$/m);
    // A server that is named in a flag is the one that is asked.
    await typed(
      terminal,
      `IDMINT_ADDRESS=127.0.0.1:1 idmint --address ${server.grpcAddress} id next shop:or\t`,
      /^\d+\r?$/m,
    );
    await typed(terminal, "idmint status --ca-file author\t", /authority-of-ours\.pem/);
    // What is ambiguous is listed.
    const from = terminal.screen().length;
    terminal.type("idmint id \t\t");
    const listed = ["decode", "encode", "next", "range", "who"].map((name) => `(?=[^]*${name})`);
    await terminal.until(new RegExp(`^${listed.join("")}`), from);
    expect(terminal.screen().slice(from)).not.toMatch(/completion|error/i);
  },
);
