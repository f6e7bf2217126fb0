export { migrate } from "./migrate.ts";
export { status } from "./status.ts";
export { open } from "./store.ts";
