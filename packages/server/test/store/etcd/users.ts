// Users of an etcd.
import type { EtcdCluster, EtcdGateway } from "@idmint/testkit/etcd";

export function toBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** Users `root`, `other`, and `idmint`, which may use the prefix; their passwords are `the-root` and `of-NAME`. */
export async function enableAuth(gateway: EtcdGateway, prefix: string): Promise<void> {
  const end = `${prefix.slice(0, -1)}0`;
  await gateway.post("auth/user/add", { name: "root", password: "the-root" });
  await gateway.post("auth/user/grant", { user: "root", role: "root" });
  for (const name of ["idmint", "other"]) {
    await gateway.post("auth/user/add", { name, password: `of-${name}` });
    await gateway.post("auth/role/add", { name });
    await gateway.post("auth/user/grant", { user: name, role: name });
  }
  const perm = { permType: "READWRITE", key: toBase64(prefix), range_end: toBase64(end) };
  await gateway.post("auth/role/grant", { name: "idmint", perm });
  await gateway.post("auth/enable", {});
}

/** What root asks of an etcd whose authentication is enabled. */
export async function asRoot(cluster: EtcdCluster, method: string, body: object): Promise<void> {
  const url = `http://${cluster.members[0]?.address}/v3/`;
  const send = async (name: string, its: object, headers = {}): Promise<unknown> => {
    const answer = await fetch(`${url}${name}`, {
      method: "POST",
      body: JSON.stringify(its),
      headers,
    });
    if (!answer.ok) throw new Error(`${name}: ${await answer.text()}`);
    return answer.json();
  };
  const root = { name: "root", password: "the-root" };
  const { token } = (await send("auth/authenticate", root)) as { token: string };
  await send(method, body, { authorization: token });
}
