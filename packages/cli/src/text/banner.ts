import { asTyped } from "../process/command-name.ts";
import type { Io } from "../process/io.ts";
import { DEFAULT_ADDRESS } from "../flags/options.ts";

/** The server's banner, with commands that work where it is read and for the address that the server has. */
export function bannerText(banner: string, grpcAddress: string, io: Pick<Io, "env">): string {
  const end = grpcAddress === DEFAULT_ADDRESS ? "" : ` --address ${grpcAddress}`;
  const text = banner.replaceAll(/^( +idmint .+)$/gm, `$1${end}`);
  return `\n${asTyped(text, io)}\n\n`;
}
