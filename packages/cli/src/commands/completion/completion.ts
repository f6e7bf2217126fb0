import { type Command, Argument } from "commander";
import { withServerAt } from "../../calls/connection.ts";
import { readContexts } from "../../flags/contexts.ts";
import { addOutputOptions, type GlobalFlags, settingsOf } from "../../flags/options.ts";
import type { Io } from "../../process/io.ts";
import { examplesText } from "../../text/output.ts";
import { plain } from "../../process/plain.ts";
import { type Candidate, type NameSource, type Next, nextOf, pathTo } from "./candidates.ts";
import { SCRIPTS, type Shell, SHELLS } from "./scripts.ts";

/** Somebody waits at a prompt, so a server that is slow has no names. */
const LONGEST_ASK_MS = 1_000;
/** Most names of one answer; a longer list is of no use at a prompt. */
const MAX_NAMES = 200;

/** `idmint completion`. `whole` makes the tree of all commands. */
export function addCompletion(
  program: Command,
  io: Io,
  whole: (silent: Io) => Promise<Command>,
): void {
  const command = program
    .command("completion")
    .description("print the script with which a shell completes commands, flags and names")
    .addArgument(new Argument("<shell>", "bash, zsh or fish").choices(SHELLS))
    .argument("[words...]", "what was typed after idmint: print what may come next instead")
    .addHelpText(
      "after",
      `
Load it in the start-up file of your shell:
  bash  ~/.bashrc                     source <(idmint completion bash)
  zsh   ~/.zshrc, after compinit      source <(idmint completion zsh)
  fish  ~/.config/fish/config.fish    idmint completion fish | source

Names of tags and servers come from the server that the command would call. It has a second to answer; without an answer
there are no names. It is called with the tokens of its context, as the command itself would be.
${examplesText(["idmint completion bash > ~/.idmint-completion.bash", "idmint completion fish | source"])}`,
    );
  addOutputOptions(command);
  command.action(async (shell: Shell, words: readonly string[]) => {
    if (words.length === 0) {
      await io.out(SCRIPTS[shell]);
      return;
    }
    const tree = await whole({ ...io, out: async () => {}, err: () => {} });
    // Flags of servers and stores are added to a command when it is parsed.
    await tree.parseAsync([...pathTo(tree, words), "--help"], { from: "user" }).catch(() => {});
    await io.out(textOf(await found(nextOf(tree, words), io), shell));
  });
}

/** The words of an answer; undefined: the shell completes names of files. */
async function found(next: Next, io: Io): Promise<readonly Candidate[] | undefined> {
  if (next.type === "files") return undefined;
  if (next.type === "words") return next.words;
  const { source, before, prefix, flags } = next;
  // At a prompt nothing can be told, and the command itself will say what is wrong.
  const names = await namesOf(source, flags, prefix, io).catch(() => []);
  return names
    .filter(({ word }) => word.startsWith(prefix))
    .map(({ word, text }) => ({ word: before + word, text }));
}

async function namesOf(
  source: NameSource,
  flags: GlobalFlags,
  prefix: string,
  io: Io,
): Promise<readonly Candidate[]> {
  if (source === "contexts") {
    const { byName } = readContexts(io.env);
    return [...byName].map(([word, { address }]) => ({ word, text: address }));
  }
  const settings = settingsOf(flags, io.env);
  const timeoutMs = Math.min(settings.timeoutMs, LONGEST_ASK_MS);
  return withServerAt({ ...settings, timeoutMs }, io, async (send) => {
    const page = { pageSize: MAX_NAMES, pageToken: "" };
    if (source === "nodes" || source === "node-ids") {
      const { nodes } = await send(
        (services) => services.nodes.listNodes.bind(services.nodes),
        page,
      );
      return nodes.map(({ instance, nodeId }) =>
        source === "nodes" ? { word: instance, text: nodeId } : { word: nodeId, text: instance },
      );
    }
    const request = { ...page, prefix, showDeleted: false };
    const { tags } = await send((services) => services.tags.listTags.bind(services.tags), request);
    return tags.map(({ name, description }) => ({ word: name, text: description }));
  });
}

/** One line says what follows, then one line a word. Each shell has its own way to tell a word from what it means. */
function textOf(candidates: readonly Candidate[] | undefined, shell: Shell): string {
  if (candidates === undefined) return "files\n";
  const lines = candidates.map(({ word, text }) => {
    const meaning = plain(text);
    if (shell === "bash") return word;
    if (shell === "fish") return `${word}\t${meaning}`;
    return `${word.replaceAll(":", "\\:")}${meaning === "" ? "" : `:${meaning}`}`;
  });
  return `${["words", ...lines].join("\n")}\n`;
}
