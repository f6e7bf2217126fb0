import type { overview as en } from "../en/overview.ts";
import type { TextsOf } from "../texts.ts";

export const overview: TextsOf<typeof en> = {
  "overview.nav": "总览",
  "overview.title": "总览",
  "overview.store": "存储",
  "overview.nodes": "服务器",
  "overview.this_node": "当前服务器",
  "state.NODE_STATE_UNSPECIFIED": "未知",
  "state.NODE_STATE_SERVING": "正常服务",
  "state.NODE_STATE_DRAINING": "正在排空",
  "state.NODE_STATE_DEGRADED": "降级",
  "state.NODE_STATE_STOPPED": "已停止发放",
  "state.STORE_STATE_UNSPECIFIED": "未知",
  "state.STORE_STATE_GRANTING": "正常授予",
  "state.STORE_STATE_UNREACHABLE": "无法连接",
  "state.STORE_STATE_FENCED": "已隔离",
  "backend.STORE_BACKEND_UNSPECIFIED": "其他",
  "backend.STORE_BACKEND_SQLITE": "SQLite",
  "backend.STORE_BACKEND_POSTGRES": "PostgreSQL",
  "backend.STORE_BACKEND_ETCD": "etcd",
};
