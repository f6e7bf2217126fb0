import { Option } from "commander";

/** What is typed when a database is accepted. */
export interface AcceptFlags {
  readonly gap: bigint;
  readonly newStore?: boolean;
  readonly oldPrimaryIsStopped?: boolean;
  readonly trustClaims?: boolean;
}

export function trustClaimsOption(): Option {
  return new Option(
    "--trust-claims",
    "raise tags to their very end where servers say that they were granted ids up to there",
  );
}

export function newStoreOption(): Option {
  return new Option(
    "--new-store",
    "the store is a copy that goes on by itself: it gets an id of its own, and servers of the original do not use it",
  );
}

export function oldPrimaryOption(): Option {
  return new Option(
    "--old-primary-is-stopped",
    "hosts of the URL that do not answer are stopped, and cannot come back as primaries",
  );
}
