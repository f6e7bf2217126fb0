import type { Node } from "@idmint/proto";
import { type Send, withServerAt } from "../../calls/connection.ts";
import type { ConnectionSettings } from "../../flags/options.ts";
import type { Io } from "../../process/io.ts";
import { plain } from "../../process/plain.ts";
import { allWellOr, type Check, fail, type Finding, warn } from "./checks.ts";
import { type ClockSeen, seen } from "./clocks.ts";

/** Of a larger fleet this many are called; the list tells of all. */
const MAX_CALLED = 32;
const PAGE = 1_000;

/** The servers on the store: whether they live, have one version and can be reached. */
export function fleetChecks(
  send: Send,
  settings: ConnectionSettings,
  io: Pick<Io, "signal">,
  clocks: ClockSeen[],
  needs: readonly string[],
): readonly Check[] {
  const nodes: Node[] = [];
  const list = async (): Promise<readonly Finding[]> => {
    let pageToken = "";
    do {
      const request = { pageSize: PAGE, pageToken };
      const answer = await send(({ nodes: its }) => its.listNodes.bind(its), request);
      nodes.push(...answer.nodes);
      pageToken = answer.nextPageToken;
    } while (pageToken !== "");
    return fleetFindings(nodes);
  };
  const callAll = async (): Promise<readonly Finding[]> => {
    const alive = nodes.filter(({ alive: lives, address }) => lives && address !== "");
    const called = alive.slice(0, MAX_CALLED);
    const found = await Promise.all(
      called.map(({ address }) => callOne({ ...settings, address, token: undefined }, io, clocks)),
    );
    const silent = nodes.filter(({ alive: lives, address }) => lives && address === "");
    return allWellOr(
      [...found, ...silent.map(withoutAddress)],
      `${called.length} of ${alive.length} servers answer at the addresses that they tell`,
    );
  };
  const late = "the server does not answer: look at its log and its load";
  return [
    { name: "fleet", needs, late, look: list },
    { name: "fleet addresses", needs: ["fleet"], late, look: callAll },
  ];
}

export function fleetFindings(nodes: readonly Node[]): readonly Finding[] {
  const alive = nodes.filter((node) => node.alive);
  const versions = [...new Set(alive.map(({ version }) => plain(version)))].toSorted();
  const dead = nodes.filter((node) => !node.alive);
  const drained = alive.filter(({ draining }) => draining);
  return allWellOr(
    [
      versions.length > 1
        ? warn(
            `servers of ${versions.length} versions: ${versions.map((version) => `${version} (${countOf(alive, version)})`).join(", ")}`,
            "finish the upgrade: restart the older servers on the new version, one after the other",
          )
        : undefined,
      ...dead.map(({ nodeId, instance }) =>
        warn(
          `${plain(instance)} (${plain(nodeId)}) is no longer heard of`,
          `start it again; if it is gone for good: idmint node forget ${plain(nodeId)}`,
        ),
      ),
      ...drained.map(({ nodeId, instance }) =>
        warn(
          `${plain(instance)} is drained by an operator`,
          `when its work is done: idmint node undrain ${plain(nodeId)}`,
        ),
      ),
    ],
    `${alive.length} servers, all of version ${versions.join()}`,
  );
}

function countOf(nodes: readonly Node[], version: string): number {
  return nodes.filter((node) => plain(node.version) === version).length;
}

function withoutAddress({ instance }: Node): Finding {
  return warn(
    `${plain(instance)} tells no address, so no SDK finds it`,
    "set node.advertise on it, since it listens on all addresses of its host",
  );
}

/**
 * Calls a server at the address that it tells to SDKs, and notes its clock. Everybody may ask for that, so no token goes to
 * an address that somebody else named.
 */
async function callOne(
  settings: ConnectionSettings,
  io: Pick<Io, "signal">,
  clocks: ClockSeen[],
): Promise<Finding | undefined> {
  const { address } = settings;
  try {
    await withServerAt(settings, io, async (send) => {
      // The connection is made first: it would count as half of the way otherwise.
      await send(({ nodes }) => nodes.getNodeTime.bind(nodes), {});
      const sentAt = Date.now();
      const { time } = await send(({ nodes }) => nodes.getNodeTime.bind(nodes), {});
      if (time !== undefined) clocks.push(seen(`server ${address}`, time.getTime(), sentAt));
    });
    return undefined;
  } catch (thrown) {
    const why = thrown instanceof Error ? plain(thrown.message) : "";
    return fail(
      `${plain(address)}, which a server tells to SDKs, cannot be called from here: ${why}`,
      "correct node.advertise on that server, or let this machine reach it",
    );
  }
}
