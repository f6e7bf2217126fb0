import { cliLine } from "../../text/cli.ts";

export function figuresLine(seconds: number): string {
  return cliLine(["figures"], { seconds: String(seconds) });
}
