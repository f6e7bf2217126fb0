// A real server on a real PostgreSQL, behind tokens, for tests of the console.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { View } from "../../src/console/view.ts";
import { Child, killChildren } from "../../src/fleet/child.ts";
import { CLI } from "../../src/program.ts";
import { Fleet, type FleetServer } from "../../src/fleet/fleet.ts";
import { TestPostgres } from "../../src/postgres.ts";

/** What a file of tests plays on. */
export class Stage {
  readonly fleet: Fleet;
  /** Texts of tokens: of one who may do everything, and of one who may look at everything. */
  readonly tokens: { readonly admin: string; readonly observer: string };

  constructor(fleet: Fleet, tokens: Stage["tokens"]) {
    this.fleet = fleet;
    this.tokens = tokens;
  }

  get server(): FleetServer {
    return this.fleet.first;
  }

  /** Where the console is: `http://127.0.0.1:PORT`. */
  get origin(): string {
    return this.server.httpOrigin;
  }

  /** The answer to a method of the API, such as `TagService/PauseTag`, over the HTTP door. */
  async ask(
    method: string,
    request: object = {},
    token: string = this.tokens.admin,
  ): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }> {
    const response = await fetch(`${this.origin}/idmint.v1.${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(request),
    });
    return {
      status: response.status,
      body: (await response.json()) as Readonly<Record<string, unknown>>,
    };
  }

  /** The same; fails unless it is answered without an error. */
  async call(
    method: string,
    request: object = {},
    token?: string,
  ): Promise<Readonly<Record<string, unknown>>> {
    const { status, body } = await this.ask(method, request, token);
    if (status !== 200) throw new Error(`${method}: ${status} ${JSON.stringify(body)}`);
    return body;
  }
}

type Variables = Readonly<Record<string, string>>;

/**
 * Starts a stage for all tests of a file. Call it at the top. What needs databases gets its variables from them; `envOf` has
 * further variables for each server.
 */
export function useStage(
  env: Variables | ((postgres: TestPostgres) => Promise<Variables>) = {},
  envOf: readonly Variables[] = [{}],
): () => Stage {
  let stage: Stage | undefined;
  let postgres: TestPostgres | undefined;
  beforeAll(async () => {
    buildConsole();
    postgres = await TestPostgres.start({ durable: true });
    const { url } = await postgres.createDatabase();
    const variables = typeof env === "function" ? await env(postgres) : env;
    const options = { servers: envOf.length, storeUrl: url, env: variables, envOf };
    const fleet = await Fleet.start(options);
    const made = async (name: string, role: string): Promise<string> =>
      (await fleet.cli("token", "create", name, `--${role}`, "*", "--store")).trim();
    stage = new Stage(fleet, {
      admin: await made("ops", "admin"),
      observer: await made("guest", "observe"),
    });
  });
  afterAll(async () => {
    await stage?.fleet.close();
    await killChildren();
    await postgres?.close();
    stage?.fleet.assertNoneCrashed();
  });
  return () => {
    if (stage === undefined) throw new Error("the stage is set before the first test");
    return stage;
  };
}

/** Types lines into a shell that knows the command line; answers what they print, and fails when one of them does. */
export async function typed(lines: string, env: Variables): Promise<string> {
  const script = `idmint() { '${process.execPath}' -C idmint-source '${CLI}' "$@"; }\n${lines}`;
  const child = new Child(["sh", "-ec", script], [], { name: lines, env });
  const { code } = await child.waitForEnd(60_000);
  if (code !== 0) throw new Error(child.describe());
  return child.stdout;
}

/** As `pnpm start` does: nothing happens when it is built of the same sources already. */
function buildConsole(): void {
  const script = path.resolve(import.meta.dirname, "../../../console/build.ts");
  execFileSync(process.execPath, ["-C", "idmint-source", script], { stdio: "inherit" });
}

/** Signs in as somebody does who pastes a token. The page in question must be open. */
export async function signIn(view: View, token: string): Promise<void> {
  // The browser tells of the answer that a token is wanted.
  view.guard.allow(/status of 401/);
  await view.page.getByLabel("Token", { exact: true }).fill(token);
  await view.page.getByRole("button", { name: "Sign in" }).click();
  await view.sees(view.page.getByRole("button", { name: "Sign out" }));
}
