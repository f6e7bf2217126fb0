import { IdmintError } from "@idmint/core";
import type { PostgresConfig } from "../../shared/config.ts";
import { addressOf, hostUrls } from "../../shared/host-urls.ts";
import { refusal } from "../refusal.ts";
import { lookAtHost } from "./look.ts";
import { choosePrimary } from "./primary-state.ts";

/**
 * Throws unless exactly one host of a URL is a primary and all others are standbys, or an operator says that those that are
 * silent are stopped. To be asked before a database is accepted.
 *
 * INVARIANT: no gap is large enough for a primary that still grants, so none may be left running when another one is accepted.
 * What cannot be asked is for a person to know.
 */
export async function assertOldPrimaryStopped(
  config: PostgresConfig,
  saysStopped: boolean,
): Promise<void> {
  const urls = hostUrls(config.url) ?? [config.url];
  if (urls.length === 1) return;
  const looks = await Promise.all(
    urls.map((url) =>
      lookAtHost(url, config, (error) => refusal(addressOf(url), (error as Error).message, "")),
    ),
  );
  const choice = choosePrimary(looks);
  if (choice.type === "refused") throw choice.error;
  const silent = looks.filter(({ type }) => type === "silent").map(({ address }) => address);
  if (silent.length === 0 || saysStopped) return;
  const names = silent.join(", ");
  throw new IdmintError(
    "STORE_REFUSED",
    `${names} does not answer, and would grant past any gap if it is a primary that still runs: stop it for certain, then accept with --old-primary-is-stopped`,
  );
}
