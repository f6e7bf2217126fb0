// The Helm chart: what Helm makes of it, whether Kubernetes would take that, and whether the servers could run with it.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Config, readConfig } from "@idmint/server";
import { beforeAll, describe, expect, test } from "vitest";
import { servesConsole } from "../../../server/src/config/http.ts";
import { longestStopMs } from "../../../server/src/main/running.ts";
import { CHART, type Manifest, renderChart, type Rendering } from "../../src/deploy/helm.ts";
import { kubernetesFaults } from "../../src/deploy/kubernetes.ts";
import { blocksOf, more, refusals, SECRETS, UNSET } from "./chart-values.ts";
import {
  type Cluster,
  containersOf,
  type DeploymentSpec,
  envOf,
  filesOf,
  podOf,
  selects,
  type ServiceSpec,
} from "./pods.ts";

const MAX_STORE_TIMEOUT_MS = 60_000;
const examples = path.join(CHART, "examples");
const names = readdirSync(examples).map((file) => path.basename(file, ".yaml"));

let rendering: Rendering;

beforeAll(() => {
  const values = new Map<string, string | object>();
  for (const name of names) values.set(name, path.join(examples, `${name}.yaml`));
  for (const [name, its] of Object.entries(more)) values.set(name, its);
  for (const [name, [its]] of Object.entries(refusals)) values.set(name, its);
  rendering = renderChart(values);
});

function rendered(name: string): readonly Manifest[] {
  const found = rendering.rendered.get(name);
  if (found === undefined) throw new Error(`${name}: ${rendering.refused.get(name)}`);
  return found.manifests;
}

function ofKind(name: string, kind: string): readonly Manifest[] {
  return rendered(name).filter((manifest) => manifest.kind === kind);
}

/** The Deployments of servers, each with the one container of its pods. */
function serversOf(name: string) {
  const servers = ofKind(name, "Deployment").map(({ metadata, spec }) => {
    const { selector, template } = spec as DeploymentSpec;
    const [container, ...others] = template.spec.containers;
    if (container === undefined || others.length > 0) throw new Error("not one container");
    return { name: metadata.name, selector, template, pod: template.spec, container };
  });
  const [first] = servers;
  if (first === undefined) throw new Error(`${name} has no Deployment`);
  return { first, servers };
}

/** A cluster in which every Secret exists. */
function cluster(zone: string | undefined): Cluster {
  const values: Readonly<Record<string, string>> = {
    "idmint-store/url": "postgres://idmint@db/idmint",
    "idmint-store/owner-url": "postgres://idmint_owner@db/idmint",
    "idmint-alarm/url": "https://alarms.example/hook",
  };
  return {
    secret: ({ name, key }) => values[`${name}/${key}`] ?? SECRETS[key] ?? "secret",
    field: (field) =>
      ({
        "metadata.name": "idmint-6f7d9c-x2b4z",
        "status.podIP": "10.1.2.3",
        "metadata.labels['topology.kubernetes.io/zone']": zone,
      })[field],
  };
}

/** Pods of that example have addresses of IPv6. */
function clusterOf(name: string, zone?: string): Cluster {
  const its = cluster(zone);
  if (name !== "tickets") return its;
  return { ...its, field: (field) => (field === "status.podIP" ? "fd00::7" : its.field(field)) };
}

function configOf(env: Readonly<Record<string, string>>): Config {
  const reading = readConfig({ env });
  expect(reading.violations).toEqual([]);
  if (reading.config === undefined) throw new Error("no configuration");
  return reading.config;
}

test("helm lint finds nothing, and says of the default values what is missing", () => {
  const [verdict, ...messages] = rendering.lint;
  expect(verdict).toBe("passed");
  expect(messages.filter((line) => /WARNING|ERROR/.test(line))).toEqual([]);
});

test.each(["1.30", "1.37"])(
  "Kubernetes %s takes all of it, and would notice a mistake",
  (release) => {
    const files = new Map(
      [...rendering.rendered].map(([name, { manifests }]) => {
        // Known to the Prometheus Operator only.
        const known = manifests.filter(({ kind }) => kind !== "ServiceMonitor");
        return [name, known.map((each) => `---\n${JSON.stringify(each)}\n`).join("")];
      }),
    );
    expect(files.size).toBe(names.length + Object.keys(more).length);
    expect(kubernetesFaults(release, files)).toEqual([]);
    const minimal = files.get("minimal") ?? "";
    const mistaken = new Map([
      ["field", minimal.replace('"terminationGracePeriodSeconds"', '"gracePeriodSeconds"')],
      ["type", minimal.replace('"failureThreshold":6}', '"failureThreshold":"six"}')],
    ]);
    const faults = kubernetesFaults(release, mistaken).join("\n");
    expect(faults).toContain("'gracePeriodSeconds' was unexpected");
    expect(faults).toContain("'six' is not of type 'integer'");
  },
);

test.each(Object.entries(refusals))("values are refused with a reason: %s", (name, [, reason]) => {
  expect(rendering.rendered.has(name)).toBe(false);
  expect(rendering.refused.get(name)).toMatch(reason);
});

describe.each([...names, ...Object.keys(more)])("%s", (name) => {
  test("the servers read their options, and find their files", () => {
    const isSix = name === "tickets";
    for (const { container, pod } of serversOf(name).servers) {
      expect(container.args).toEqual(["serve"]);
      const env = envOf(container, clusterOf(name));
      const config = configOf(env);
      expect(config.nodeAdvertise).toEqual({ host: isSix ? "fd00::7" : "10.1.2.3", port: 7600 });
      expect(config.grpcAddress.host).toBe(isSix ? "::" : "0.0.0.0");
      expect(config.instance).toBe("idmint-6f7d9c-x2b4z");
      const files = filesOf(pod, container);
      const named = Object.values(env).flatMap(
        (value) => value.match(/\/etc\/idmint\/[\w./-]+/g) ?? [],
      );
      expect([...files.keys()].toSorted()).toEqual(named.toSorted());
    }
  });

  test("a pod has more time to end than its server takes", () => {
    for (const { container, pod } of serversOf(name).servers) {
      const config = configOf(envOf(container, clusterOf(name)));
      const longest = longestStopMs({ ...config, storeTimeoutMs: MAX_STORE_TIMEOUT_MS });
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(longest / 1_000);
    }
  });

  test("Services, the policy and the probes name ports on which the server listens", () => {
    const { container, template } = serversOf(name).first;
    const config = configOf(envOf(container, clusterOf(name)));
    const listens = {
      grpc: config.grpcAddress.port,
      http: config.httpAddress === "none" ? 0 : config.httpAddress.port,
      ...(config.adminAddress === undefined ? {} : { admin: config.adminAddress.port }),
    };
    const ports = Object.fromEntries(
      container.ports?.map((port) => [port.name, port.containerPort]) ?? [],
    );
    expect(ports).toEqual(listens);
    const services = ofKind(name, "Service");
    expect(services.length).toBe("admin" in listens ? 3 : 2);
    for (const { spec } of services) {
      const { selector, ports: own } = spec as ServiceSpec;
      expect(selects(selector, template.metadata.labels)).toBe(true);
      for (const { port, targetPort } of own) expect(ports[targetPort]).toBe(port);
    }
    for (const { spec } of ofKind(name, "NetworkPolicy")) {
      const { podSelector, ingress } = spec as {
        podSelector: { matchLabels: Record<string, string> };
        ingress: { ports: { port: string }[] }[];
      };
      expect(selects(podSelector.matchLabels, template.metadata.labels)).toBe(true);
      for (const rule of ingress)
        for (const { port } of rule.ports) expect(ports).toHaveProperty(port);
    }
    // The kubelet speaks no TLS.
    const isSecure = config.tlsCertFile !== undefined;
    for (const probe of [
      container.startupProbe,
      container.livenessProbe,
      container.readinessProbe,
    ]) {
      expect(isSecure ? ports[probe?.httpGet?.port ?? ""] : probe?.grpc?.port).toBe(
        isSecure ? listens.http : listens.grpc,
      );
      if (isSecure) {
        expect(probe?.httpGet?.scheme).toBe(config.httpTls === "on" ? "HTTPS" : "HTTP");
      }
    }
  });

  test("no pod has more rights than it needs, and none sees variables of Services", () => {
    const pods = rendered(name).flatMap((manifest) => podOf(manifest) ?? []);
    expect(pods.length).toBeGreaterThan(0);
    for (const pod of pods) {
      expect(pod).toMatchObject({ enableServiceLinks: false, automountServiceAccountToken: false });
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
      for (const { securityContext } of containersOf(pod)) {
        expect(securityContext).toMatchObject({
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
        });
      }
      for (const { projected } of pod.volumes ?? []) {
        if (projected !== undefined) expect(projected.defaultMode).toBe(0o440);
      }
    }
  });

  test("what selects pods selects the right ones, and the notes are whole", () => {
    const { servers } = serversOf(name);
    const pods = servers.map(({ template }) => template.metadata.labels);
    for (const [place, { selector }] of servers.entries()) {
      expect(pods.map((labels) => selects(selector.matchLabels, labels))).toEqual(
        pods.map((_, other) => other === place),
      );
    }
    const others = [...ofKind(name, "Job"), ...ofKind(name, "Pod")].map(
      ({ metadata, spec }) =>
        (spec as Partial<DeploymentSpec>).template?.metadata.labels ?? metadata.labels,
    );
    for (const { spec } of [...ofKind(name, "Service"), ...ofKind(name, "PodDisruptionBudget")]) {
      const { selector } = spec as {
        selector: Record<string, string> & { matchLabels?: Record<string, string> };
      };
      const wanted = selector.matchLabels ?? selector;
      for (const labels of pods) expect(selects(wanted, labels)).toBe(true);
      for (const labels of others) expect(selects(wanted, labels)).toBe(false);
    }
    expect(rendering.rendered.get(name)?.notes).toContain("idmint.ids.svc:7600");
  });
});

test("three zones: a Deployment, an autoscaler and the name of the zone for each", () => {
  const zones = ["eu-central-1a", "eu-central-1b", "eu-central-1c"];
  const { servers } = serversOf("three-zones");
  expect(servers.map((each) => each.name)).toEqual(zones.map((zone) => `idmint-${zone}`));
  for (const [place, { container, pod }] of servers.entries()) {
    const { affinity, topologySpreadConstraints } = pod;
    // What the node's label says elsewhere does not count.
    const { nodeZone, snowflakeDataCenter } = configOf(envOf(container, cluster("elsewhere")));
    expect([nodeZone, snowflakeDataCenter]).toEqual([zones[place], place + 1]);
    expect(affinity).toEqual({
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                { key: "topology.kubernetes.io/zone", operator: "In", values: [zones[place]] },
              ],
            },
          ],
        },
      },
    });
    expect(topologySpreadConstraints?.map(({ topologyKey }) => topologyKey)).toEqual([
      "kubernetes.io/hostname",
    ]);
  }
  const targets = ofKind("three-zones", "HorizontalPodAutoscaler").map(
    ({ spec }) => (spec as { scaleTargetRef: { name: string } }).scaleTargetRef.name,
  );
  expect(targets).toEqual(servers.map((each) => each.name));
  expect(ofKind("three-zones", "PodDisruptionBudget")).toHaveLength(1);
});

test("without zones, servers are spread over them, and know theirs where Kubernetes tells it", () => {
  const { container, pod } = serversOf("tls-and-tokens").first;
  expect(pod.topologySpreadConstraints?.map(({ topologyKey }) => topologyKey)).toEqual([
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
  ]);
  expect(configOf(envOf(container, cluster("eu-1"))).nodeZone).toBe("eu-1");
  expect(configOf(envOf(container, cluster(undefined))).nodeZone).toBe("");
});

test("each option of the server can be set", () => {
  const { container } = serversOf("every-option").first;
  const { options } = readConfig({ env: envOf(container, clusterOf("every-option")) });
  const unset = options.filter(({ source }) => source === "default").map(({ key }) => key);
  expect(unset.toSorted()).toEqual(UNSET.toSorted());
});

test("numbers reach the server as they were written", () => {
  const { container } = serversOf("everything").first;
  const config = configOf(envOf(container, cluster("a")));
  expect(config).toMatchObject({
    limitTags: 1_000_000,
    epochGap: 9_000_000_000_000_000_000n,
    snowflakeDataCenter: 0,
    drainDelayMs: 600_000,
    drainTimeMs: 600_000,
    ledger: "off",
  });
});

test("the migration runs before the servers, as the role that owns the schema, and knows no other secrets", () => {
  const [job] = ofKind("tls-and-tokens", "Job");
  expect(job?.metadata.annotations).toMatchObject({ "helm.sh/hook": "pre-install,pre-upgrade" });
  const pod = job === undefined ? undefined : podOf(job);
  const [container] = pod?.containers ?? [];
  if (container === undefined) throw new Error("no container");
  expect(container.args).toEqual(["migrate", "--yes"]);
  const env = envOf(container, {
    ...cluster(undefined),
    secret: ({ name, key }) =>
      key.endsWith("url") ? `postgres://${key}@db/idmint` : `${name}/${key}`,
  });
  expect(env).toEqual({
    IDMINT_STORE_URL: "postgres://owner-url@db/idmint",
    IDMINT_STORE_PASSWORD: "idmint-store/owner-password",
  });
  const tickets = ofKind("tickets", "Job").flatMap((each) => podOf(each) ?? []);
  expect(tickets.flatMap(containersOf).map(({ args }) => args)).toEqual([
    ["migrate", "--yes"],
    ["ticket", "migrate", "--yes"],
  ]);
});

test("the values of docs/console.md serve the console, and its port is the one that the page forwards", () => {
  const { container } = serversOf("page-console").first;
  const config = configOf(envOf(container, cluster("a")));
  expect(servesConsole(config)).toBe(true);
  expect(config.httpAdmin).toBe("on");
  expect(
    servesConsole(configOf(envOf(serversOf("page-install").first.container, cluster("a")))),
  ).toBe(false);
  const page = readFileSync(path.join(CHART, "../../../docs/console.md"), "utf8");
  const [, service = "", port = ""] =
    /^kubectl -n ids port-forward service\/(\S+) (\d+)$/m.exec(page) ?? [];
  const named = ofKind("page-console", "Service").find(({ metadata }) => metadata.name === service);
  expect((named?.spec as ServiceSpec | undefined)?.ports).toContainEqual(
    expect.objectContaining({ port: Number(port), targetPort: "http" }),
  );
  const [monitor] = ofKind("page-console", "ServiceMonitor");
  expect(monitor?.spec).toMatchObject({ endpoints: [{ port: "http", scheme: "https" }] });
});

test("the page makes each Secret that its values name, with the keys that they name", () => {
  const commands = blocksOf("Install", "sh").join("\n");
  const { container, pod } = serversOf("page-install").first;
  const keys = [
    ...filesOf(pod, container).values(),
    ...(container.env ?? []).flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []),
  ];
  expect(keys).toHaveLength(5);
  for (const { name, key } of keys) {
    const line = commands
      .split("\n")
      .find((each) => / create secret \w+ /.test(each) && each.includes(` ${name} `));
    // `create secret tls` names its keys by itself.
    expect(line).toMatch(
      key.startsWith("tls.") ? / tls .*--cert=.* --key=/ : new RegExp(`[= /]${key}`),
    );
  }
});
