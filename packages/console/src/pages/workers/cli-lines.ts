import { cliLine } from "../../text/cli.ts";

export function tagsLine(prefix: string): string {
  return cliLine(["tag", "list"], { prefix });
}

export function workersLine(tag: string): string {
  return cliLine(["worker", "list", tag]);
}
