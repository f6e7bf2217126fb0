// What Kubernetes makes of the pods of a rendered chart.
import type { Manifest } from "../../src/deploy/helm.ts";

export interface SecretKey {
  readonly name: string;
  readonly key: string;
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string };
    readonly secretKeyRef?: SecretKey;
  };
}

export interface Probe {
  readonly grpc?: { readonly port: number; readonly service: string };
  readonly httpGet?: { readonly path: string; readonly port: string; readonly scheme?: string };
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: readonly Variable[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Volume {
  readonly name: string;
  readonly emptyDir?: object;
  readonly projected?: {
    readonly defaultMode: number;
    readonly sources: readonly {
      readonly secret: {
        readonly name: string;
        readonly items: readonly { readonly key: string; readonly path: string }[];
      };
    }[];
  };
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly Volume[] | null;
  readonly enableServiceLinks: boolean;
  readonly automountServiceAccountToken: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly affinity?: unknown;
  readonly topologySpreadConstraints?: readonly { readonly topologyKey: string }[];
}

export interface DeploymentSpec {
  readonly replicas?: number;
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly template: {
    readonly metadata: { readonly labels: Readonly<Record<string, string>> };
    readonly spec: PodSpec;
  };
}

export interface ServiceSpec {
  readonly clusterIP?: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly ports: readonly {
    readonly name: string;
    readonly port: number;
    readonly targetPort: string;
  }[];
}

/** The pod of a manifest that has one. */
export function podOf({ kind, spec }: Manifest): PodSpec | undefined {
  if (kind === "Pod") return spec as PodSpec;
  if (kind === "Deployment" || kind === "Job") return (spec as DeploymentSpec).template.spec;
  return undefined;
}

export function containersOf({ initContainers = [], containers }: PodSpec): readonly Container[] {
  return [...initContainers, ...containers];
}

export interface Cluster {
  /** What the keys of Secrets hold. */
  readonly secret: (key: SecretKey) => string;
  /** What the fields of the pod hold, by their paths; undefined as for a label that is not there. */
  readonly field: (path: string) => string | undefined;
}

/** The environment that a container gets. Variables refer to those before them as `$(NAME)`. */
export function envOf({ env = [] }: Container, { secret, field }: Cluster): Record<string, string> {
  const all: Record<string, string> = {};
  for (const { name, value = "", valueFrom } of env) {
    if (name in all) throw new Error(`${name} is set twice`);
    if (valueFrom?.secretKeyRef !== undefined) all[name] = secret(valueFrom.secretKeyRef);
    else if (valueFrom?.fieldRef === undefined) {
      all[name] = value.replaceAll(/\$\((\w+)\)/g, (whole, other: string) => all[other] ?? whole);
    } else all[name] = field(valueFrom.fieldRef.fieldPath) ?? "";
  }
  return all;
}

/** The files that a container sees, by their paths, and the keys of Secrets that hold them. */
export function filesOf({ volumes }: PodSpec, { volumeMounts = [] }: Container) {
  const files = new Map<string, SecretKey>();
  for (const { name, mountPath } of volumeMounts) {
    const volume = (volumes ?? []).find((each) => each.name === name);
    if (volume === undefined) throw new Error(`no volume ${name}`);
    for (const { secret } of volume.projected?.sources ?? []) {
      for (const { key, path } of secret.items) {
        files.set(`${mountPath}/${path}`, { name: secret.name, key });
      }
    }
  }
  return files;
}

/** Whether labels are those that a selector wants. */
export function selects(
  selector: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>> = {},
): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}
