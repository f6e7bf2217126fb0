import { randomBytes } from "node:crypto";
import type { Right, Role as RoleName } from "@idmint/core/server";
import { ROLES } from "@idmint/core/server";
import { ListTokensResponse, Role, type Token } from "@idmint/proto";
import { type Command, Option } from "commander";
import { withServer } from "../../calls/connection.ts";
import { addPageOptions, listPages, type PageFlags, tellOfMore } from "../../calls/paging.ts";
import { addConfigFlags, loadServerConfig } from "../../flags/config-flags.ts";
import { addRootOptions } from "../../flags/options.ts";
import { duration } from "../../flags/parse.ts";
import type { Io } from "../../process/io.ts";
import { timeText } from "../../text/kind-text.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { protoJson } from "../../text/proto-json.ts";
import { plain } from "../../process/plain.ts";
import { columns } from "../../text/table.ts";
import { confirm, serverPlace } from "../confirm.ts";

const MAX_LISTED = 10_000;
const DAY_MS = 86_400_000;

const PROTO_ROLES: Readonly<Record<RoleName, Role>> = {
  issue: Role.ISSUE,
  observe: Role.OBSERVE,
  admin: Role.ADMIN,
};
const ROLE_WORDS: Readonly<Record<number, string>> = Object.fromEntries(
  ROLES.map((role) => [PROTO_ROLES[role], role]),
);

/** `idmint token …`: the tokens by which callers prove who they are. */
export function addTokenCommands(program: Command, io: Io): void {
  const group = program
    .command("token")
    .description("manage the tokens by which callers prove who they are")
    .helpCommand(false);
  group.hook("preSubcommand", async (_group, command) => {
    if (command.name() === "create") await addConfigFlags(command, "store");
  });
  addCreate(group, io);
  addList(group, io);
  addRevoke(group, io);
  for (const command of [group, ...group.commands]) addRootOptions(command);
}

interface CreateFlags {
  readonly issue?: readonly string[];
  readonly observe?: readonly string[];
  readonly admin?: readonly string[];
  readonly expires?: number;
  readonly store?: boolean;
}

/** What was made, as it is shown. */
interface Made {
  readonly tokenId: string;
  readonly text: string;
  readonly expireTime: Date | undefined;
  readonly effectiveTime: Date | undefined;
}

const collect = (value: string, all: readonly string[] = []): string[] => [...all, value];

const rightOption = (role: string, what: string): Option =>
  new Option(`--${role} <tags>`, `may ${what}; repeat it for several`).argParser(collect);

function addCreate(group: Command, io: Io): void {
  const command = group
    .command("create")
    .description("make a token and print it; it is not shown again")
    .argument("<principal>", "name of whoever will use it")
    .addOption(rightOption("issue", "take ids of these tags"))
    .addOption(rightOption("observe", "look at these tags, with * at servers too"))
    .addOption(rightOption("admin", "change these tags, with * servers and tokens too"))
    .addOption(
      new Option("--expires <time>", "how long it is valid, 1m to 366d (default 90d)").argParser(
        duration("--expires", { minMs: 60_000, maxMs: 366 * DAY_MS }),
      ),
    )
    .addOption(
      new Option("--store", "write it into the store, without a server: for the first token"),
    )
    .addHelpText(
      "after",
      `
Tags are named by a whole name, by the beginning of names and *, or by * for all.
${examplesText([
  "idmint token create ops --admin '*' --issue '*' --store --store-url sqlite:/var/lib/idmint/idmint.db",
  "idmint token create orders --issue 'orders.*' --expires 30d > /run/secrets/idmint",
])}`,
    );
  command.action(async (principal: string, flags: CreateFlags) => {
    const rights = ROLES.flatMap((role) =>
      (flags[role] ?? []).map((tags): Right => ({ role, tags })),
    );
    const make = flags.store === true ? makeInStore : makeByServer;
    const made = await make(command, io, { principal, rights, lifetimeMs: flags.expires });
    const { tokenId, text, expireTime, effectiveTime } = made;
    await printAnswer(command, io, {
      json: () => ({ tokenId, principal, text, expireTime, effectiveTime }),
      text: () => `${plain(text)}\n`,
    });
    io.err(
      `idmint: token ${plain(tokenId)} of ${plain(principal)} is valid until ${timeText(expireTime)}, and known to all servers within 2 s; it is not shown again\n`,
    );
  });
}

interface TokenRequest {
  readonly principal: string;
  readonly rights: readonly Right[];
  readonly lifetimeMs: number | undefined;
}

async function makeByServer(command: Command, io: Io, wanted: TokenRequest): Promise<Made> {
  const { principal, rights, lifetimeMs } = wanted;
  const request = {
    principal,
    rights: rights.map(({ role, tags }) => ({ role: PROTO_ROLES[role], tags })),
    lifetime:
      lifetimeMs === undefined ? undefined : { seconds: BigInt(lifetimeMs / 1_000), nanos: 0 },
    validateOnly: false,
  };
  let made: Made | undefined;
  await withServer(command, io, async (send) => {
    const answer = await send(({ access }) => access.createToken.bind(access), request);
    const { text, token, effectiveTime } = answer;
    made = { text, tokenId: token?.tokenId ?? "", expireTime: token?.expireTime, effectiveTime };
  });
  if (made === undefined) throw new Error("no answer");
  return made;
}

/** Nobody can ask a server before there is a token that lets them. */
async function makeInStore(command: Command, io: Io, wanted: TokenRequest): Promise<Made> {
  const { newToken, openStore, operatorNote, storeConfigOf, tooManyTokens } =
    await import("@idmint/server");
  const config = storeConfigOf(await loadServerConfig(command, io));
  const { token, text } = newToken(wanted, { nowMs: Date.now(), randomBytes });
  const store = await openStore(config);
  try {
    if (!(await store.addToken(token, operatorNote("idmint token create")))) throw tooManyTokens();
  } finally {
    await store.close();
  }
  const effectiveTime = new Date(Date.now() + 2_000);
  return { tokenId: token.id, text, expireTime: new Date(token.expiresAtMs), effectiveTime };
}

function addList(group: Command, io: Io): void {
  const command = group
    .command("list")
    .description("list all tokens, without their texts")
    .addHelpText("after", examplesText(["idmint token list"]));
  addPageOptions(command, "tokens", { max: MAX_LISTED });
  command.action(async (flags: PageFlags) => {
    await withServer(command, io, async (send) => {
      const { items: tokens, nextPageToken } = await listPages(flags, async (page) => {
        const answer = await send(({ access }) => access.listTokens.bind(access), page);
        return { items: answer.tokens, nextPageToken: answer.nextPageToken };
      });
      await printAnswer(command, io, {
        json: () => protoJson(ListTokensResponse, { tokens, nextPageToken }),
        text: () => tokenTable(tokens),
      });
      tellOfMore(io, "tokens", nextPageToken);
    });
  });
}

function tokenTable(tokens: readonly Token[]): string {
  const rows = tokens.map(({ tokenId, principal, rights, createTime, expireTime }) => [
    plain(tokenId),
    plain(principal),
    plain(rights.map(({ role, tags }) => `${ROLE_WORDS[role] ?? role}:${tags}`).join(" ")),
    timeText(createTime),
    timeText(expireTime),
  ]);
  return columns([["TOKEN", "PRINCIPAL", "RIGHTS", "CREATED", "EXPIRES"], ...rows]);
}

function addRevoke(group: Command, io: Io): void {
  const command = group
    .command("revoke")
    .description("make a token worthless")
    .argument("<token>", "the public id of the token, as idmint token list shows it")
    .addHelpText("after", examplesText(["idmint token revoke 0123456789abcdef --yes"]));
  command.action(async (tokenId: string) => {
    const place = serverPlace(command, io);
    await confirm(command, io, { place, effect: `makes the token ${plain(tokenId)} worthless` });
    await withServer(command, io, async (send) => {
      const request = { tokenId, validateOnly: false };
      const answer = await send(({ access }) => access.revokeToken.bind(access), request);
      await printAnswer(command, io, {
        json: () => ({ tokenId, effectiveTime: answer.effectiveTime }),
        text: () => `revoked: no server that reaches the store believes it within 2 s\n`,
      });
    });
  });
}
