import type { DatabaseStanding } from "@idmint/server";
import { plain } from "../../process/plain.ts";
import { columns } from "../../text/table.ts";

/** What `idmint store spread status` shows. */
export function spreadText(databases: readonly DatabaseStanding[]): string {
  const moving = [...new Set(databases.flatMap((database) => database.moving))];
  const table = columns([
    ["DATABASE", "TAGS", "LEFT", "STATE"],
    ...databases.map((database) => {
      const { name, here, gone } = database;
      const illness = illnessOf(database, databases);
      return [name, String(here), String(gone), illness === "" ? "ok" : plain(illness)];
    }),
  ]);
  if (moving.length === 0) return table;
  return `${table}\non their way, finish with idmint store spread move: ${moving.map(plain).join(", ")}\n`;
}

/** The same for scripts. */
export function spreadJson(databases: readonly DatabaseStanding[]): unknown {
  return databases.map((database) => {
    const { name, here, gone, moving, members, fleetId } = database;
    const illness = illnessOf(database, databases);
    return { name, here, gone, moving, members, fleetId, illness };
  });
}

/** What is wrong with the first database that is not well; undefined when all are. */
export function spreadIllness(databases: readonly DatabaseStanding[]): string | undefined {
  const ill = databases.find((database) => illnessOf(database, databases) !== "");
  return ill === undefined ? undefined : `database ${ill.name}: ${illnessOf(ill, databases)}`;
}

function illnessOf(
  { name, illness, fenced, member, members, fleetId }: DatabaseStanding,
  databases: readonly DatabaseStanding[],
): string {
  if (illness !== "") return illness;
  if (fenced !== "") return `${fenced}; see idmint store accept`;
  if (members.length === 0) return "not part of the store yet; see idmint store spread add";
  if (member !== name) return `was made as ${member}`;
  const configured = databases.map((database) => database.name).toSorted();
  if (members.join(",") !== configured.join(",")) return `belongs to ${members.join(",")}`;
  const others = databases.filter((one) => one.fleetId !== "" && one.fleetId !== fleetId);
  return others.length > 0 ? "belongs to another store" : "";
}
