import { Option } from "commander";

/** What is typed when a database is accepted. */
export interface AcceptFlags {
  readonly gap: bigint;
  readonly oldPrimaryIsStopped?: boolean;
}

export function oldPrimaryOption(): Option {
  return new Option(
    "--old-primary-is-stopped",
    "hosts of the URL that do not answer are stopped, and cannot come back as primaries",
  );
}
