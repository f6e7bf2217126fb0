import type { OptionType } from "./types.ts";

/** One option. Its environment variable, its flag and its place in the YAML file follow from its key. */
export interface Option<T> {
  /** Path in the YAML file, e.g. `grpc.address`. */
  readonly key: string;
  readonly type: OptionType<T>;
  /** As a user would write it; undefined: none. */
  readonly default: string | undefined;
  /** What it does, in full sentences. */
  readonly text: string;
  /** A secret has no flag, because others on the machine can see flags. It may come from a file, and is never shown. */
  readonly isSecret?: boolean;
  /** Cannot be set in the YAML file. */
  readonly isNotInFile?: boolean;
}

/** An option with a default. */
export function option<T>(
  key: string,
  type: OptionType<T>,
  byDefault: string,
  description: string,
): Option<T> {
  return { key, type, default: byDefault, text: description };
}

/** An option without a default. */
export function optional<T>(
  key: string,
  type: OptionType<T>,
  description: string,
  more: Pick<Option<T>, "isSecret" | "isNotInFile"> = {},
): Option<T | undefined> {
  return { key, type, default: undefined, text: description, ...more };
}

/** The environment variable of an option: `grpc.address` is IDMINT_GRPC_ADDRESS. */
export function envOf(option: Pick<Option<unknown>, "key">): string {
  return `IDMINT_${option.key.replaceAll(".", "_").toUpperCase()}`;
}

/** The flag of an option without its dashes, `grpc-address`; undefined for secrets. */
export function flagOf(option: Pick<Option<unknown>, "key" | "isSecret">): string | undefined {
  return option.isSecret === true ? undefined : option.key.replaceAll(/[._]/g, "-");
}
