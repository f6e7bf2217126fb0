import { spoiledRowsSuite } from "../spoiled-rows.ts";
import { etcdHarness } from "./harness.ts";

spoiledRowsSuite("etcd", etcdHarness, {
  change: async ({ gateway, config }, tag, columns) => {
    const key = `${config.prefix}tag/${tag}`;
    const [row] = await gateway.under(key);
    await gateway.put(
      key,
      JSON.stringify({ ...(JSON.parse(row?.value ?? "") as object), ...columns }),
    );
  },
  remove: ({ gateway, config }, tag) => gateway.remove(`${config.prefix}tag/${tag}`),
});
