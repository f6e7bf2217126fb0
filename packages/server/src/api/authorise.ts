import type { Access } from "../service/access/access.ts";
import type { Authorise } from "./method.ts";

/** Rights decide. Nothing is read of the request where nobody has to be known. */
export function authoriseBy(access: Pick<Access, "assertKnown" | "authorise">): Authorise {
  return (context, _path, request, rule) => {
    if (rule.isOpen) return;
    const { principal } = context;
    if (principal === undefined) access.assertKnown(principal);
    else access.authorise(principal, rule, rule.about(request));
  };
}
