/** A wish for a worker id of a tag of kind snowflake. */
export interface WorkerLeaseRequest {
  readonly tag: string;
  /** Stable name of the holder; who had a worker id under this name in this data center gets it back. */
  readonly instance: string;
  /** Undefined: that of the tag. */
  readonly dataCenter: number | undefined;
  /** How far ahead of use time is reserved, in milliseconds; 1,000 … 60,000. */
  readonly reserveAheadMs: number;
  /** Epoch of the record by whose layout ids will be made; in another one: SEGMENT_NOT_READY. Undefined: any. */
  readonly epoch?: bigint | undefined;
}

/** Which worker id of a tag, and the token of the last answer about it. */
export interface WorkerLeaseKey {
  readonly tag: string;
  readonly dataCenter: number;
  readonly workerId: number;
  readonly token: bigint;
}

/** A wish to keep a lease, and to raise its reservation. */
export interface WorkerRenewal extends WorkerLeaseKey {
  /** Up to where to reserve, milliseconds since 1970. 0: not raised. */
  readonly reserveUntilMs: number;
  readonly reserveAheadMs: number;
  /** That of the answer before, or one more: then the reservation begins anew. */
  readonly extension: number;
}

/** What a renewal answers, durable before this answer. Times are milliseconds since 1970. */
export interface RenewedWorkerLease {
  /** Good for one call. */
  readonly token: bigint;
  readonly ttlMs: number;
  readonly extension: number;
  /** Last millisecond reserved for the holder. */
  readonly reservedUntilMs: number;
  /** The registry's clock. */
  readonly nowMs: number;
  /** The tag's epoch. */
  readonly epoch: bigint;
}

/** What a lease answers, durable before this answer. */
export interface WorkerLease extends RenewedWorkerLease {
  readonly dataCenter: number;
  readonly workerId: number;
  /** First millisecond reserved: one after all that was ever reserved of this worker id and extension. */
  readonly notBeforeMs: number;
}

/** Gives out leases. An unknown outcome rejects with STORE_UNAVAILABLE; the token may be used up then. */
export interface WorkerLeases {
  /** WORKER_IDS_EXHAUSTED when no worker id of the layout is free. */
  leaseWorker(request: WorkerLeaseRequest): Promise<WorkerLease>;
  /** WORKER_LEASE_LOST when the token is not the row's. */
  renewWorker(renewal: WorkerRenewal): Promise<RenewedWorkerLease>;
  /** Ends a lease at once; its reservation stays. WORKER_LEASE_LOST when the token is not the row's. */
  releaseWorker(key: WorkerLeaseKey): Promise<void>;
}
