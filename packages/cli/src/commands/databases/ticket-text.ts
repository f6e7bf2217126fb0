import { nameOfId, type TagPlan } from "@idmint/core/server";
import type { MigrationReport } from "@idmint/server";
import { migrationJson, migrationText } from "./store-text.ts";
import { plain } from "../../process/plain.ts";
import { columns } from "../../text/table.ts";
import type { TicketStatus } from "./ticket-status.ts";

/** What `idmint ticket migrate` did to each database, or would do. */
export function migrationsText(
  reports: ReadonlyMap<string, MigrationReport>,
  isDryRun: boolean,
): string {
  return [...reports]
    .map(([name, report]) => `${name}: ${migrationText(report, isDryRun)}`)
    .join("");
}

export function migrationsJson(
  reports: ReadonlyMap<string, MigrationReport>,
  isDryRun: boolean,
): unknown {
  const entries = [...reports].map(([name, report]) => [name, migrationJson(report, isDryRun)]);
  return Object.fromEntries(entries) as unknown;
}

/** What `idmint ticket status` shows. */
export function statusText({ databases, tags }: TicketStatus): string {
  const names = databases.map(({ name }) => name);
  const health = columns([
    ["DATABASE", "SLOTS", "STATE"],
    ...databases.map(({ name, slots, illness }) => [
      name,
      String(slots),
      illness === "" ? "ok" : plain(illness),
    ]),
  ]);
  if (tags.length === 0) return `${health}\nno tag has slots here\n`;
  const rows = tags.map(({ slotsId, owned, moving, unknown, highest }) => [
    plain(nameOfId(slotsId)),
    ...names.map((name) => String(owned.get(name) ?? 0)),
    String(moving),
    String(unknown),
    String(highest),
  ]);
  return `${health}\n${columns([["TAG", ...names, "MOVING", "UNKNOWN", "HIGHEST ID"], ...rows])}`;
}

export function statusJson({ databases, tags }: TicketStatus): unknown {
  return {
    databases,
    tags: tags.map(({ slotsId, owned, moving, unknown, highest }) => ({
      tag: nameOfId(slotsId),
      slotsId,
      owned: Object.fromEntries(owned),
      moving,
      unknown,
      highest: String(highest),
    })),
  };
}

/** The moves of one tag, one a line, and how many slots wait. */
export function planText({ slotsId, slots, pending, moves, waiting, away }: TagPlan): string {
  const tag = plain(nameOfId(slotsId));
  const count = pending.length + moves.length;
  const lines = [
    ...pending.map(({ slot, from, to }) => ["  finish", `slot ${slot}`, from, "→", nameOfId(to)]),
    ...moves.map(({ slot, from, to }) => ["  move", `slot ${slot}`, from, "→", to]),
  ];
  const wait = waiting === 0 ? "" : `  ${waiting} slots wait for ${away.join(", ")}\n`;
  return `${tag}: ${count === 0 ? "nothing to move" : `${count} of ${slots} slots move`}\n${columns(lines)}${wait}`;
}

export function planJson({ slotsId, slots, pending, moves, waiting, away }: TagPlan): unknown {
  return {
    tag: nameOfId(slotsId),
    slotsId,
    slots,
    pending: pending.map(({ slot, from, to }) => ({ slot, from, to: nameOfId(to) })),
    moves,
    waiting,
    away,
  };
}
