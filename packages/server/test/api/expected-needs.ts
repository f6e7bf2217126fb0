// Who may call which method, written down a second time.
import type { Role } from "@idmint/core/server";

/** The roles that may call a method for a tag; `all`: only with a right for every tag. `name`: the field that decides. */
export interface Expected {
  readonly may: readonly Role[] | "everybody" | "the known";
  readonly by?: "tag" | "name" | "tag.name" | "prefix";
}

const issue: Expected = { may: ["issue"], by: "tag" };
const admin: Expected = { may: ["admin"], by: "name" };
const observe: Expected = { may: ["observe", "admin"], by: "name" };
const adminAll: Expected = { may: ["admin"] };
const observeAll: Expected = { may: ["observe", "admin"] };

export const EXPECTED: Readonly<Record<string, Expected>> = {
  "IdService/GenerateId": issue,
  "IdService/GenerateIds": issue,
  "IdService/StreamIds": issue,
  "IdService/AllocateSegment": issue,
  "IdService/ReleaseSegment": issue,
  "IdService/DecodeId": { may: ["issue", "observe", "admin"], by: "tag" },
  "TagService/CreateTag": { may: ["admin"], by: "tag.name" },
  "TagService/GetTag": { may: ["issue", "observe", "admin"], by: "name" },
  "TagService/ListTags": { may: ["observe", "admin"], by: "prefix" },
  "TagService/UpdateTag": { may: ["admin"], by: "tag.name" },
  "TagService/DeleteTag": admin,
  "TagService/AdvanceTag": admin,
  "TagService/ReturnToPeriod": admin,
  "TagService/PauseTag": admin,
  "TagService/ResumeTag": admin,
  "TagService/GetTagEffect": observe,
  "TagService/MoveTag": admin,
  "TagService/ListPeriods": observe,
  "TagService/GetTagCapacity": observe,
  "TagService/LookupId": { may: ["observe", "admin"], by: "tag" },
  "TagService/ListLedgerEntries": { may: ["observe", "admin"], by: "tag" },
  "WorkerService/LeaseWorker": issue,
  "WorkerService/RenewWorkerLease": issue,
  "WorkerService/ReleaseWorkerLease": issue,
  "WorkerService/ListWorkers": { may: ["observe", "admin"], by: "tag" },
  "NodeService/GetNodeStatus": observeAll,
  "NodeService/GetNodeTime": { may: "everybody" },
  "NodeService/ListNodes": { may: "the known" },
  "NodeService/ListFigures": { may: ["observe", "admin"], by: "tag" },
  "NodeService/ForgetNode": adminAll,
  "NodeService/StopIssuing": adminAll,
  "NodeService/ResumeIssuing": adminAll,
  "NodeService/GetIssuing": observeAll,
  "NodeService/SetNodeWeight": adminAll,
  "NodeService/DrainNode": adminAll,
  "NodeService/UndrainNode": adminAll,
  "AuditService/ListAuditEvents": adminAll,
  "AccessService/GetAccess": { may: "the known" },
  "AccessService/CreateToken": adminAll,
  "AccessService/ListTokens": adminAll,
  "AccessService/RevokeToken": adminAll,
};
