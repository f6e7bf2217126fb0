import "../node-version.ts";
import type { FastifyInstance, FastifyPluginAsync } from "fastify";
import type { IdClient } from "../api.ts";
import { type IdmintOptions, type Readiness, readinessOf, warmAll } from "./readiness.ts";

export type { IdmintOptions, Readiness, TagReadiness } from "./readiness.ts";

declare module "fastify" {
  interface FastifyInstance {
    /** The client of `@idmint/client/fastify`. */
    readonly ids: IdClient;
    /** Whether the plugin's tags can be used, for a readiness route. Never rejects. */
    idsReady(): Promise<Readiness>;
  }
}

/**
 * A plugin of Fastify: `app.ids` is the client. `app.ready()` and `app.listen()` wait until the tags can be used, and reject
 * when one cannot. `app.close()` closes the client after the last request.
 */
export const idmint: FastifyPluginAsync<IdmintOptions> = Object.assign(
  async (app: FastifyInstance, options: IdmintOptions): Promise<void> => {
    app.decorate("ids", options.client);
    app.decorate("idsReady", () => readinessOf(options));
    app.addHook("onReady", () => warmAll(options));
    app.addHook("onClose", () => options.client.close());
  },
  {
    // Fastify's own way to say that the decorations are for the whole application, and which versions it is made for.
    [Symbol.for("skip-override")]: true,
    [Symbol.for("plugin-meta")]: { name: "@idmint/client", fastify: "5.x" },
  },
);
