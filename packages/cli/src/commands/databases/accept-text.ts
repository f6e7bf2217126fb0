import type { AcceptReport } from "@idmint/server";
import { plain } from "../../process/plain.ts";

type Claims = AcceptReport["claims"];
type Server = Claims["servers"][number];

/** What an accept heard of servers, a line for each thing. */
export function claimsLines({ claims }: AcceptReport): readonly string[] {
  const { servers } = claims;
  return [
    ...raisedLines(claims),
    ...servers.map(serverLine),
    ...(servers.length === 0 ? ["no server said what it was granted; the gap is for all"] : []),
  ];
}

function raisedLines({ raised, most, lost }: Claims): readonly string[] {
  const below =
    most === undefined
      ? []
      : [
          `${raised} tags were below what servers were granted, ${plain(most.tag)} by ${most.by} ids, which is most; they were raised before the gap was added`,
        ];
  if (lost === 0) return below;
  return [
    ...below,
    `${lost} tags that servers were granted ids of are not in the store; it knows them as deleted, so new tags of their names begin above`,
  ];
}

const TOLD: Readonly<Record<Server["told"], (since: string) => string>> = {
  all: (since) => `said all that it was granted; it runs since ${since}`,
  since: (since) =>
    `said what it was granted since ${since}; the gap is for what was granted under its row before`,
  part: () => "said only a part of what it was granted in time; the gap is for the rest",
  nothing: () => "did not say what it was granted; the gap is for it",
};

function serverLine({ instance, address, id, told, sinceMs, isMoving }: Server): string {
  const name = plain(instance === "" ? id : instance);
  const place = address === "" ? "" : ` (${plain(address)})`;
  const since = sinceMs === undefined ? "" : new Date(sinceMs).toISOString();
  const still = told === "nothing" && !isMoving ? "is silent, and " : "";
  return `server ${name}${place} ${still}${TOLD[told](since)}`;
}

/** The same for scripts. */
export function claimsJson({ claims }: AcceptReport): unknown {
  const { raised, most, lost, servers } = claims;
  return {
    raisedTags: raised,
    most: most === undefined ? null : { tag: most.tag, ids: String(most.by) },
    lostTags: lost,
    servers: servers.map(({ id, instance, address, told, sinceMs, isMoving }) => ({
      nodeId: id,
      instance,
      address,
      told,
      since: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
      moving: isMoving,
    })),
  };
}
