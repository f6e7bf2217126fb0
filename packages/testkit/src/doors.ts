/** The doors of gRPC that a server may have. */
export const DOORS = ["fast", "grpc-js"] as const;
type Door = (typeof DOORS)[number];
/** The one of a server that is not told. */
export const DEFAULT_DOOR: Door = "fast";

/** What gives the servers of a test the door that was chosen for its file; `file-setup.ts` chooses. */
export function doorEnv(): { readonly IDMINT_GRPC_DOOR?: string } {
  const { IDMINT_GRPC_DOOR: door } = process.env;
  return door === undefined ? {} : { IDMINT_GRPC_DOOR: door };
}

/** What servers of a test have that no test is about: the door of its file, and no delay, since nobody stands in front of them. */
export function serverEnv(): Readonly<Record<string, string>> {
  return { ...doorEnv(), IDMINT_DRAIN_DELAY: "0s" };
}

/** The door of a test's servers. */
export function testDoor(): Door {
  return DOORS.find((door) => door === doorEnv().IDMINT_GRPC_DOOR) ?? DEFAULT_DOOR;
}
