import type { en } from "./en.ts";
import type { TextsOf } from "./texts.ts";
import { audit } from "./zh/audit.ts";
import { nodes } from "./zh/nodes.ts";
import { overview } from "./zh/overview.ts";
import { shell } from "./zh/shell.ts";
import { tags } from "./zh/tags.ts";
import { tokens } from "./zh/tokens.ts";
import { workers } from "./zh/workers.ts";

export const zh: TextsOf<typeof en> = {
  ...shell,
  ...overview,
  ...nodes,
  ...workers,
  ...tags,
  ...audit,
  ...tokens,
};
