import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import { run } from "../children.ts";
import type { SqliteHarness } from "../harness.ts";

/** Everything that lies beside a store. */
export const BESIDE: readonly string[] = ["", "-wal", "-shm", ".witness", ".witness.next"];

/** Copies everything that lies beside a store, as a backup of its folder does. */
export function backUp({ folder, config }: SqliteHarness): string {
  const backup = path.join(folder, "backup");
  rmSync(backup, { recursive: true, force: true });
  run("mkdir", backup);
  for (const suffix of BESIDE) {
    if (existsSync(`${config.path}${suffix}`)) run("cp", `${config.path}${suffix}`, backup);
  }
  return backup;
}

/** Writes a backup into the very files it was made of, and removes what it has not. */
export function putBack({ config }: SqliteHarness, backup: string): void {
  const name = path.basename(config.path);
  for (const suffix of BESIDE) {
    const saved = path.join(backup, `${name}${suffix}`);
    const place = `${config.path}${suffix}`;
    if (!existsSync(saved)) rmSync(place, { force: true });
    else run("cp", saved, place);
  }
}
