import { defaultClientConditions, defineConfig } from "vite";

/** Where `pnpm --filter @idmint/console dev` finds the API: a server on this machine. */
const API = process.env["IDMINT_HTTP"] ?? "http://127.0.0.1:7601";

export default defineConfig({
  base: "/console/",
  // Our packages are read from their sources, unbuilt.
  resolve: { conditions: ["idmint-source", ...defaultClientConditions] },
  build: {
    target: "es2022",
    // The content security policy allows images of this form, and nothing else inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // What the libraries in the bundle want to be told with it. A name with "license" would keep pnpm from packing ours.
    license: { fileName: "third-party.md" },
  },
  server: { host: "127.0.0.1", proxy: { "^/idmint\\.v1\\.": { target: API } } },
});
