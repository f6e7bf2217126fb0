import type { Io } from "./io.ts";
import { DEFAULT_ADDRESS } from "./options.ts";

/**
 * The server's banner, with commands that work where it is read: in a clone of the repository, where pnpm started it,
 * there is no `idmint` on the path, and a server at another address than the default has to be named.
 */
export function bannerText(banner: string, grpcAddress: string, env: Io["env"]): string {
  const command = env["npm_lifecycle_event"] === undefined ? "idmint" : "npx pnpm@10 idmint";
  const end = grpcAddress === DEFAULT_ADDRESS ? "" : ` --address ${grpcAddress}`;
  const text = banner.replaceAll(/^( +)idmint (.+)$/gm, `$1${command} $2${end}`);
  return `\n${text}\n\n`;
}
