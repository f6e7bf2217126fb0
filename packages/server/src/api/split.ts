import { IdmintError } from "@idmint/core";
import type { Api } from "./api.ts";
import { unaryHandler } from "./method.ts";
import { isForAdmins } from "./need.ts";

const REFLECTION = "/grpc.reflection.";

/** The table without reflection: nobody is told what the API is. */
export function withoutReflection(api: Api): Api {
  return new Map([...api].filter(([path]) => !path.startsWith(REFLECTION)));
}

/**
 * The table as it is served beside an address for administrators: their methods are refused, whoever calls, before anything
 * of the call is read, and reflection is served there only.
 */
export function forCallers(api: Api): Api {
  return new Map(
    [...withoutReflection(api)].map(([path, handler]) => {
      if (handler.kind !== "unary" || !isForAdmins(handler.rule)) return [path, handler] as const;
      const { rule, response } = handler;
      const answer = (): never => {
        const text = `${path} is served at the address for administrators only (option admin.address)`;
        throw new IdmintError("METHOD_NOT_FOUND", text);
      };
      return [path, unaryHandler({ path, rule, answer, response })] as const;
    }),
  );
}
