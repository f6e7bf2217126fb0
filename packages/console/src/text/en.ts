import { audit } from "./en/audit.ts";
import { nodes } from "./en/nodes.ts";
import { overview } from "./en/overview.ts";
import { shell } from "./en/shell.ts";
import { tags } from "./en/tags.ts";
import { tokens } from "./en/tokens.ts";
import { workers } from "./en/workers.ts";

export const en = {
  ...shell,
  ...overview,
  ...nodes,
  ...workers,
  ...tags,
  ...audit,
  ...tokens,
} as const satisfies Readonly<Record<string, string>>;
