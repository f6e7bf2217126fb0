/** The doors of gRPC that a server may have. */
export const DOORS = ["fast", "grpc-js"] as const;
/** The one of a server that is not told. */
export const DEFAULT_DOOR: (typeof DOORS)[number] = "grpc-js";

/** What gives the servers of a test the door that was chosen for its file; `doors-setup.ts` chooses. */
export function doorEnv(): { readonly IDMINT_GRPC_DOOR?: string } {
  const { IDMINT_GRPC_DOOR: door } = process.env;
  return door === undefined ? {} : { IDMINT_GRPC_DOOR: door };
}
