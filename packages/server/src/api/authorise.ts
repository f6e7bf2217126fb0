import type { Access } from "../service/access/access.ts";
import type { Authorise } from "./method.ts";

/** Rights decide. */
export function authoriseBy(access: Pick<Access, "authorise">): Authorise {
  return (context, _path, request, rule) => {
    if (!rule.isOpen) access.authorise(context.principal, rule, request);
  };
}
