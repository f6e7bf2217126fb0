import { expect, test } from "vitest";
import { assertHeaders } from "../../../src/http/requests/request.ts";

test("a hundred headers are taken, and no more", () => {
  const rawHeaders = Array.from({ length: 100 }, (_, at) => [`x-${at}`, "y"]).flat();
  assertHeaders({ rawHeaders });
  expect(() => assertHeaders({ rawHeaders: [...rawHeaders, "x", "y"] })).toThrow(
    "more than 100 headers",
  );
});
