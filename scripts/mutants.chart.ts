import type { Mutant } from "./mutant.ts";

const health = "packages/server/src/api/standard/health.ts";
const chart = "deploy/helm/idmint/templates";
const rendered = ["packages/testkit/test/deploy/chart.e2e.test.ts"];
const pods = ["packages/testkit/test/deploy/chart-server.e2e.test.ts"];
const door = ["packages/server/test/grpc-door.e2e.test.ts"];

/** What the Helm chart rests on. */
export const chartMutants: readonly Mutant[] = [
  {
    name: "a server without its store is not alive",
    file: health,
    find: "health.isServing || service === LIVENESS",
    replace: "health.isServing",
    tests: door,
    only: "liveness serves",
  },
  {
    name: "who watches liveness is told that nothing changed",
    file: health,
    find: " && service !== LIVENESS",
    replace: "",
    tests: door,
    only: "liveness serves",
  },
  {
    name: "connections live as long as they like",
    file: "packages/server/src/grpc/door.ts",
    find: '"grpc.max_connection_age_ms": options.maxConnectionAgeMs',
    replace: '"grpc.max_connection_age_ms": 30 * 60_000',
    tests: door,
    only: "as old as the limit",
  },
  {
    name: "a pod that waits for its store is ended",
    file: `${chart}/deployment.yaml`,
    find: '"service" "liveness" "path" "/healthz") | nindent 12 }}\n            periodSeconds: 10',
    replace:
      '"service" "idmint.v1.IdService" "path" "/readyz") | nindent 12 }}\n            periodSeconds: 10',
    tests: pods,
    only: "unready and not dead",
  },
  {
    name: "a pod is killed while its server drains",
    file: `${chart}/deployment.yaml`,
    find: "$.Values.drainSeconds 80",
    replace: "$.Values.drainSeconds 30",
    tests: rendered,
    only: "more time to end",
  },
  {
    name: "servers of one zone run in another",
    file: `${chart}/deployment.yaml`,
    find: "operator: In\n",
    replace: "operator: Exists\n",
    tests: rendered,
    only: "three zones",
  },
  {
    name: "Helm rounds the numbers of options",
    file: `${chart}/_helpers.tpl`,
    find: '{{ printf "%.0f" . }}',
    replace: "{{ . }}",
    tests: rendered,
    only: "as they were written",
  },
  {
    name: "ids are kept in a file that is lost with its pod",
    file: `${chart}/_helpers.tpl`,
    find: 'contains "sqlite:" $url',
    replace: 'contains "sqlite3:" $url',
    tests: rendered,
    only: "refused with a reason",
  },
  {
    name: "the migration gets every secret of the servers",
    file: `${chart}/_helpers.tpl`,
    find: 'pick . "store" "ticket" "allow_unsafe_store" | toJson',
    replace: ". | toJson",
    tests: rendered,
    only: "the migration runs before",
  },
  {
    name: "options may be set twice in the chart",
    file: "scripts/chart.ts",
    find: '  "node.zone",\n',
    replace: "",
    tests: ["packages/testkit/test/deploy/generated.test.ts"],
  },
];
