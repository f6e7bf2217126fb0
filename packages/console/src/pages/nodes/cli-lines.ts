import { cliLine } from "../../text/cli.ts";

export function trafficLine(verb: "drain" | "undrain", server: string): string {
  return cliLine(["node", verb, server]);
}

export function weightLine(server: string, weight: number): string {
  return cliLine(["node", "weight", server, String(weight)]);
}

export function forgetLine(nodeId: string): string {
  return cliLine(["node", "forget", nodeId], { yes: true });
}
