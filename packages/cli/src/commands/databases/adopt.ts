import { invalidField } from "@idmint/core";
import type { Command } from "commander";
import { loadServerConfig } from "../../flags/config-flags.ts";
import { confirm } from "../confirm.ts";
import type { Io } from "../../process/io.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { plain } from "../../process/plain.ts";

/** `idmint store adopt`: has a server belong to another store. */
export function addAdoptCommand(group: Command, io: Io): void {
  const command = group
    .command("adopt")
    .description("make the server with this cache file belong to another store")
    .argument("<id>", "id of the store, as `idmint store status` shows it")
    .addHelpText(
      "after",
      `
A server with snowflake.cache_file keeps the id of its store beside that file, and treats every other store as away. Adopt
another store on purpose: one that was made anew, a PostgreSQL database that takes the place of a SQLite file, or the other
side of a blue/green pair. Stop the server first. A server without a cache file belongs to the store that it finds when it
starts, or to the one that store.expect_id names.
${examplesText(["idmint store adopt 6d1f0a52-6f0c-4a7e-9d5e-0c3b8a1f2e47 --snowflake-cache-file /var/lib/idmint/cache --yes"])}`,
    );
  command.action(async (id: string) => {
    const { adoptStore } = await import("@idmint/server");
    const { snowflakeCacheFile: file } = await loadServerConfig(command, io);
    if (id.trim() === "") throw invalidField("id", "must be the id of a store, got nothing");
    if (file === undefined) {
      throw invalidField("snowflake.cache_file", "is required: the server's own, from its start");
    }
    const effect = `makes the server belong to store ${id} from its next start on`;
    const undoneBy = "idmint store adopt with the previous id";
    await confirm(command, io, { place: `cache file: ${file}`, effect, undoneBy });
    const before = await adoptStore(file, id);
    await printAnswer(command, io, {
      json: () => ({ cacheFile: file, storeId: id, before: before ?? null }),
      text: () =>
        before === undefined
          ? `belongs to ${plain(id)}\n`
          : `belongs to ${plain(id)}, and to ${plain(before)} before\n`,
    });
  });
}
