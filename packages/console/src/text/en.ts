import { nodes } from "./en/nodes.ts";
import { overview } from "./en/overview.ts";
import { shell } from "./en/shell.ts";

export const en = { ...shell, ...overview, ...nodes } as const satisfies Readonly<
  Record<string, string>
>;
