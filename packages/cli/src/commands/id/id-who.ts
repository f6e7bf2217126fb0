import { type LedgerEntry, LedgerEntryKind, LookupIdResponse, LookupResult } from "@idmint/proto";
import type { Command } from "commander";
import { withServer } from "../../calls/connection.ts";
import type { Io } from "../../process/io.ts";
import { timeText } from "../../text/kind-text.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { protoJson } from "../../text/proto-json.ts";
import { plain } from "../../process/plain.ts";
import { answersText, number, text } from "./id-decode.ts";

/** `idmint id who`: which server and which client were given an id. */
export function addWho(group: Command, io: Io): void {
  const command = group
    .command("who")
    .description("say which server and which client were given an id, as far as the ledger knows")
    .argument("<tag>", "name of the tag")
    .argument("<id>", "the id, a number or a text, as the tag issues it")
    .addHelpText(
      "after",
      `
Instances are names that clients give themselves; principals were proved. Nobody is named if the id may have gone to
somebody else later. It does not say whether the id was ever issued.
${examplesText(["idmint id who orders 4711", "idmint id who orders 4711 --json | jq -r .client.instance"])}`,
    );
  command.action(async (tag: string, id: string) => {
    await withServer(command, io, async (send) => {
      const { tag: found } = await send(({ tags }) => tags.getTag.bind(tags), { name: tag });
      const isText = found !== undefined && answersText(found);
      const request = { tag, value: isText ? text(id) : number(id) };
      const answer = await send(({ tags }) => tags.lookupId.bind(tags), request);
      await printAnswer(command, io, {
        json: () => protoJson(LookupIdResponse, answer),
        text: () => `${whoText(answer)}\n`,
      });
    });
  });
}

/** Why no client is named. */
const REASONS: Readonly<Record<number, string>> = {
  [LookupResult.GRANTED]:
    "It was issued by that server itself, or was not issued yet, or the client's row was lost.",
  [LookupResult.RELEASED]: "A client gave it back unused. Who got it after that is not known.",
  [LookupResult.GIVEN_BACK]:
    "Not known: a server gave it back to the store unused. Who got it after that is not known.",
  [LookupResult.LOST]: "Not known: a server lost rows about it.",
  [LookupResult.FORGOTTEN]:
    "Not known: its rows are not kept any more, or are of a store that went back and was accepted.",
  [LookupResult.CONTRADICTION]: "Not known: rows say different things about it.",
  [LookupResult.UNKNOWN]:
    "Not known: there is no row about it. When a server is killed, its rows of the last second are lost.",
  [LookupResult.NOT_GRANTED]: "Nobody: it is above the tag's floor.",
};

function whoText({ result, server, client }: LookupIdResponse): string {
  const reason = REASONS[result] ?? "Not known.";
  if (client !== undefined) return `${clientText(client)}, ${segmentText(client)}`;
  if (server === undefined) return reason;
  const isGrant = server.kind === LedgerEntryKind.GRANT;
  const segment = isGrant ? `, ${segmentText(server)}` : "";
  return `${serverText(server)} at ${timeText(server.time)}${segment}\n${reason}`;
}

function clientText(client: LedgerEntry): string {
  const { instance, principal, time } = client;
  const name = instance === "" ? "a client without a name" : `SDK instance ${plain(instance)}`;
  const proof = principal === "" ? "" : ` of principal ${plain(principal)}`;
  return `${name}${proof} at ${timeText(time)} from ${serverText(client)}`;
}

function serverText({ server, nodeId }: LedgerEntry): string {
  return server === "" ? `server ${plain(nodeId)}` : plain(server);
}

function segmentText({ firstId, lastId }: LedgerEntry): string {
  return `in a segment of ${lastId - firstId + 1n} (${firstId} to ${lastId})`;
}
