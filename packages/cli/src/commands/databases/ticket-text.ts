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
  const rows = tags.map(({ slotsId, owned, moving, unknown, lost, forgotten, highest }) => [
    plain(nameOfId(slotsId)),
    ...names.map((name) => String(owned.get(name) ?? 0)),
    String(moving),
    String(unknown),
    String(lost),
    String(forgotten),
    String(highest),
  ]);
  const heads = ["TAG", ...names, "MOVING", "UNKNOWN", "LOST", "FORGOTTEN", "HIGHEST ID"];
  return `${health}\n${columns([heads, ...rows])}`;
}

export function statusJson({ databases, tags }: TicketStatus): unknown {
  return {
    databases,
    tags: tags.map(({ slotsId, owned, moving, unknown, lost, forgotten, highest }) => ({
      tag: nameOfId(slotsId),
      slotsId,
      owned: Object.fromEntries(owned),
      moving,
      unknown,
      lost,
      forgotten,
      highest: String(highest),
    })),
  };
}

/** The moves of one tag, one a line, and how many slots wait. */
export function planText(plan: TagPlan): string {
  const { slotsId, slots, pending, moves, waiting, away } = plan;
  const tag = plain(nameOfId(slotsId));
  const count = pending.length + moves.length;
  const lines = [
    ...pending.map(({ slot, from, to }) => ["  finish", `slot ${slot}`, from, "→", nameOfId(to)]),
    ...moves.map(({ slot, from, to }) => ["  move", `slot ${slot}`, from, "→", to]),
  ];
  const wait = waiting === 0 ? "" : `  ${waiting} slots wait for ${away.join(", ")}\n`;
  return `${tag}: ${count === 0 ? "nothing to move" : `${count} of ${slots} slots move`}\n${columns(lines)}${wait}${lostText(plan)}`;
}

/** What is lost of a tag, and the way out; empty when nothing is. */
export function lostText({ slotsId, slots, lost, isUnused }: TagPlan): string {
  if (lost === 0) return "";
  const name = nameOfId(slotsId);
  const how = isUnused
    ? "nothing was ever issued of the others, so CreateTag may have failed half-way"
    : "a database was replaced by an empty one, or is left out of ticket.urls";
  return `  ${lost} of ${slots} slots are lost, no database has them: ${how}. idmint ticket forget ${plain(name)} gives them up\n`;
}

/** What `idmint ticket forget` did. */
export function forgetText(
  tag: string,
  given: readonly { forgotten: number; slots: number }[],
): string {
  return given
    .map(({ forgotten, slots }) => `${plain(tag)}: ${forgotten} of ${slots} slots are given up\n`)
    .join("");
}

export function planJson(plan: TagPlan): unknown {
  const { slotsId, slots, pending, moves, waiting, lost, isUnused, away } = plan;
  return {
    tag: nameOfId(slotsId),
    slotsId,
    slots,
    pending: pending.map(({ slot, from, to }) => ({ slot, from, to: nameOfId(to) })),
    moves,
    waiting,
    lost,
    isUnused,
    away,
  };
}
