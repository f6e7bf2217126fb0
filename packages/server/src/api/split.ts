import { IdmintError } from "@idmint/core";
import type { Api } from "./api.ts";
import { isForAdmins } from "./need.ts";

/**
 * The table as it is served beside an address for administrators: their methods are refused, whoever calls, before anything
 * of the call is read.
 */
export function withoutAdministration(api: Api): Api {
  return new Map(
    [...api].map(([path, handler]) => {
      if (handler.kind === "stream" || !isForAdmins(handler.rule)) return [path, handler] as const;
      const handle = (): never => {
        const text = `${path} is served at the address for administrators only (option admin.address)`;
        throw new IdmintError("METHOD_NOT_FOUND", text);
      };
      return [path, { ...handler, handle }] as const;
    }),
  );
}
