/** What an error is on the wire. */
export interface WireStatus {
  /** Number of the gRPC code. */
  readonly code: number;
  readonly message: string;
  /** A serialized google.rpc.Status. */
  readonly details: Uint8Array;
}
