import { onTestFinished } from "vitest";
import { HttpDoor } from "../../src/http/door.ts";
import { Hosts } from "../../src/http/hosts.ts";
import type { Route } from "../../src/http/route.ts";
import { realSystem } from "../../src/main/system.ts";

/** A door with these routes; closed until it listens. */
export function doorOf(routes: readonly Route[], port = 0): Promise<HttpDoor> {
  const options = {
    host: "127.0.0.1",
    port,
    hosts: new Hosts([]),
    maxConnections: 100,
    maxConnectionAgeMs: 60_000,
    takesCommonNames: false,
    onRefused: () => undefined,
  };
  const ports = { ...realSystem, onBadReload: () => undefined };
  return HttpDoor.create(routes, options, ports);
}

/** The port of a door with these routes, open until the test ends. */
export async function openDoor(routes: readonly Route[]): Promise<number> {
  const door = await doorOf(routes);
  const port = await door.listen();
  onTestFinished(() => door.close(0));
  return port;
}
