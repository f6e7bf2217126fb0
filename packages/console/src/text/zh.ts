import type { en } from "./en.ts";
import type { TextsOf } from "./texts.ts";
import { nodes } from "./zh/nodes.ts";
import { overview } from "./zh/overview.ts";
import { shell } from "./zh/shell.ts";

export const zh: TextsOf<typeof en> = { ...shell, ...overview, ...nodes };
