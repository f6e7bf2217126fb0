// What the dashboards of deploy/grafana show. Their look is made in dashboards.ts.
import type { Query, RowSpec } from "./panel.ts";

/** Of one fleet, and of those of its servers and tags that were chosen. */
const FLEET = 'job="$job"';
const SERVER = `${FLEET}, instance=~"$instance"`;
const TAG = `${SERVER}, tag=~"$tag"`;
const RATE = "[$__rate_interval]";

const q = (expr: string, legend: string): Query => ({ expr, legend });

/** The 50th and the 99th percentile of a histogram. */
function percentiles(name: string, labels: string, by = ""): readonly Query[] {
  return [0.5, 0.99].map((share) => {
    const rate = `sum by (${["le", by].filter(Boolean).join(", ")}) (rate(${name}_bucket{${labels}}${RATE}))`;
    const percent = `p${share * 100}`;
    return q(`histogram_quantile(${share}, ${rate})`, by === "" ? percent : `{{${by}}} ${percent}`);
  });
}

/** A fleet: whether callers get ids, for how long, and what stands in the way. */
export const OVERVIEW: readonly RowSpec[] = [
  {
    title: "Now",
    panels: [
      {
        title: "Servers ready",
        about: "Servers that take calls, of those that Prometheus knows.",
        unit: "percentunit",
        isStat: true,
        redBelow: 0.5,
        queries: [
          q(`sum(max by (instance) (idmint_ready{${FLEET}})) / count(up{${FLEET}})`, "ready"),
        ],
      },
      {
        title: "Alerts",
        about: "Alerts that fire. docs/monitoring.md explains each.",
        unit: "short",
        isStat: true,
        redFrom: 1,
        queries: [
          q('count(ALERTS{alertname=~"Idmint.+", alertstate="firing"}) or vector(0)', "alerts"),
        ],
      },
      {
        title: "Ids a second",
        about: "Ids that were issued, or handed out in segments.",
        unit: "short",
        isStat: true,
        queries: [q(`sum(rate(idmint_ids_issued_total{${SERVER}}${RATE}))`, "ids")],
      },
      {
        title: "Calls a second",
        about: "Calls, and requests of streams.",
        unit: "reqps",
        isStat: true,
        queries: [q(`sum(rate(idmint_calls_total{${SERVER}}${RATE}))`, "calls")],
      },
      {
        title: "Refused",
        about: "Share of the calls that were refused, for whatever reason.",
        unit: "percentunit",
        isStat: true,
        redFrom: 0.05,
        queries: [
          q(
            `sum(rate(idmint_refusals_total{${SERVER}}${RATE})) / sum(rate(idmint_calls_total{${SERVER}}${RATE}))`,
            "refused",
          ),
        ],
      },
      {
        title: "A server stops issuing in",
        about:
          "The shortest time after which a server refuses every call, if the store does not answer until then.",
        unit: "s",
        isStat: true,
        redBelow: 600,
        queries: [q(`min(idmint_store_offline_remaining_seconds{${SERVER}})`, "left")],
      },
    ],
  },
  {
    title: "Ids",
    panels: [
      {
        title: "Ids a second, by tag",
        about:
          "Ids that were issued, or handed out in segments. _other is all tags without series of their own.",
        unit: "short",
        queries: [q(`sum by (tag) (rate(idmint_ids_issued_total{${TAG}}${RATE}))`, "{{tag}}")],
      },
      {
        title: "Ids in memory last for",
        about:
          "The shortest time of any server at the present rate. When it is over, callers wait for the store.",
        unit: "s",
        isLog: true,
        queries: [q(`min by (tag) (idmint_segment_remaining_time_seconds{${TAG}})`, "{{tag}}")],
      },
      {
        title: "Calls that wait for ids",
        about:
          "By tag. Calls of sequences always wait for the store, those of segments should not.",
        unit: "short",
        queries: [q(`sum by (tag) (idmint_waiters{${TAG}})`, "{{tag}}")],
      },
      {
        title: "Tags run out in",
        about: "The nearest limit of each tag, at the rate of the last days.",
        unit: "s",
        isLog: true,
        queries: [
          q(
            `min by (tag, limit) (idmint_capacity_remaining_time_seconds{${TAG}})`,
            "{{tag}} {{limit}}",
          ),
        ],
      },
      {
        title: "Share of segments left",
        about: "The lowest of any server. A new segment is loaded when a tenth of one is used.",
        unit: "percentunit",
        queries: [q(`min by (tag) (idmint_segment_remaining_ratio{${TAG}})`, "{{tag}}")],
      },
      {
        title: "Ids wasted a second",
        about: "Ids that became a gap, by tag. No id comes twice for it.",
        unit: "short",
        queries: [q(`sum by (tag) (rate(idmint_ids_wasted_total{${TAG}}${RATE}))`, "{{tag}}")],
      },
    ],
  },
  {
    title: "Calls",
    panels: [
      {
        title: "Calls a second, by method",
        about: "Calls that were answered, refusals among them.",
        unit: "reqps",
        queries: [
          q(
            `sum by (rpc_method) (rate(rpc_server_call_duration_seconds_count{${SERVER}}${RATE}))`,
            "{{rpc_method}}",
          ),
        ],
      },
      {
        title: "How long GenerateId takes",
        about: "From the arrival of a call to its answer.",
        unit: "s",
        queries: percentiles(
          "rpc_server_call_duration_seconds",
          `${SERVER}, rpc_method="idmint.v1.IdService/GenerateId"`,
        ),
      },
      {
        title: "Refusals a second, by reason",
        about: "docs/errors.md explains each reason.",
        unit: "reqps",
        queries: [
          q(`sum by (reason) (rate(idmint_refusals_total{${SERVER}}${RATE}))`, "{{reason}}"),
        ],
      },
      {
        title: "Refusals for overload and quotas",
        about: "Calls a second that were refused because there were too many of them.",
        unit: "reqps",
        queries: [
          q(`sum(rate(idmint_calls_shed_total{${SERVER}}${RATE}))`, "overload"),
          q(`sum by (quota) (rate(idmint_quota_refusals_total{${SERVER}}${RATE}))`, "{{quota}}"),
        ],
      },
      {
        title: "Calls in the server",
        about: "Calls for ids that wait for their answers.",
        unit: "short",
        queries: [q(`sum by (instance) (idmint_calls_waiting{${SERVER}})`, "{{instance}}")],
      },
      {
        title: "Connections",
        about: "Open connections of gRPC and HTTP.",
        unit: "short",
        queries: [q(`sum by (instance) (idmint_connections{${SERVER}})`, "{{instance}}")],
      },
    ],
  },
  {
    title: "Store, Redis and ticket databases",
    panels: [
      {
        title: "Reached",
        about: "1 while it answers a server, and 0 otherwise.",
        unit: "short",
        queries: [
          q(`min by (instance) (idmint_store_up{${SERVER}})`, "store from {{instance}}"),
          q(`min by (redis) (idmint_redis_up{${SERVER}})`, "Redis {{redis}}"),
          q(
            `min by (database) (idmint_ticket_database_up{${SERVER}})`,
            "ticket database {{database}}",
          ),
        ],
      },
      {
        title: "How long the store and Redis take",
        about: "The 99th percentile of each call.",
        unit: "s",
        queries: percentiles(
          "db_client_operation_duration_seconds",
          SERVER,
          "db_operation_name",
        ).slice(1),
      },
      {
        title: "How long loads of segments take",
        about: "From the store to memory. Callers wait only when memory is empty.",
        unit: "s",
        queries: percentiles("idmint_load_duration_seconds", SERVER),
      },
      {
        title: "Loads that failed, a second",
        about: "By reason. They are tried again.",
        unit: "short",
        queries: [
          q(
            `sum by (error_type) (rate(idmint_load_failures_total{${SERVER}}${RATE}))`,
            "{{error_type}}",
          ),
        ],
      },
      {
        title: "Store or tags that went back",
        about: "Above 0, ids are refused until somebody accepts the store with a gap.",
        unit: "short",
        queries: [
          q(`max by (instance) (idmint_store_fenced{${SERVER}})`, "store, {{instance}}"),
          q(`max by (instance) (idmint_tags_fenced{${SERVER}})`, "tags, {{instance}}"),
        ],
      },
      {
        title: "Rows of the ledger a second",
        about: "Nobody can say who got the ids of rows that were dropped.",
        unit: "short",
        queries: [
          q(`sum(rate(idmint_ledger_rows_total{${SERVER}}${RATE}))`, "noted"),
          q(`sum(rate(idmint_ledger_dropped_total{${SERVER}}${RATE}))`, "dropped"),
        ],
      },
    ],
  },
  {
    title: "Snowflakes and clocks",
    panels: [
      {
        title: "Time reserved for snowflakes",
        about: "The shortest of any server. At 0 no ids of the tag are made.",
        unit: "s",
        queries: [
          q(`min by (tag) (idmint_worker_reservation_remaining_seconds{${TAG}})`, "{{tag}}"),
        ],
      },
      {
        title: "Leases of worker ids last for",
        about: "The shortest of any server. They are renewed every few seconds.",
        unit: "s",
        queries: [q(`min by (tag) (idmint_worker_lease_remaining_seconds{${TAG}})`, "{{tag}}")],
      },
      {
        title: "Clocks are off by",
        about: "From the clock of the store, or from the mean of the other servers.",
        unit: "s",
        queries: [
          q(
            `max by (instance, reference) (abs(idmint_clock_offset_seconds{${SERVER}}))`,
            "{{instance}} from {{reference}}",
          ),
        ],
      },
    ],
  },
];

/** The processes of servers: what they take of their machines. */
export const SERVERS: readonly RowSpec[] = [
  {
    title: "Processes",
    panels: [
      {
        title: "Event loop, how late",
        about: "The 99th percentile between two scrapes. Every call waits that long.",
        unit: "s",
        queries: [
          q(`max by (instance) (nodejs_eventloop_delay_p99_seconds{${SERVER}})`, "{{instance}}"),
        ],
      },
      {
        title: "Event loop, longest delay",
        about: "Between two scrapes; garbage collections show here.",
        unit: "s",
        queries: [
          q(`max by (instance) (nodejs_eventloop_delay_max_seconds{${SERVER}})`, "{{instance}}"),
        ],
      },
      {
        title: "Event loop, how busy",
        about: "At 1 a process has no time left.",
        unit: "percentunit",
        queries: [
          q(`max by (instance) (nodejs_eventloop_utilization_ratio{${SERVER}})`, "{{instance}}"),
        ],
      },
      {
        title: "Processor",
        about: "Seconds of a processor in each second, of all processes of a server.",
        unit: "short",
        queries: [
          q(
            `sum by (instance) (rate(process_cpu_time_seconds_total{${SERVER}}${RATE}))`,
            "{{instance}}",
          ),
        ],
      },
      {
        title: "Memory",
        about: "RSS of all processes of a server.",
        unit: "bytes",
        queries: [q(`sum by (instance) (process_memory_usage_bytes{${SERVER}})`, "{{instance}}")],
      },
      {
        title: "Up for",
        about: "The youngest process of each server.",
        unit: "s",
        queries: [q(`min by (instance) (process_uptime_seconds{${SERVER}})`, "{{instance}}")],
      },
    ],
  },
  {
    title: "Servers",
    panels: [
      {
        title: "Ready, and overloaded",
        about: "1 while callers should be sent to a server; 1 while it refuses calls for overload.",
        unit: "short",
        queries: [
          q(`max by (instance) (idmint_ready{${SERVER}})`, "{{instance}} ready"),
          q(`max by (instance) (idmint_overloaded{${SERVER}})`, "{{instance}} overloaded"),
        ],
      },
      {
        title: "Calls a second",
        about: "Calls, and requests of streams.",
        unit: "reqps",
        queries: [
          q(`sum by (instance) (rate(idmint_calls_total{${SERVER}}${RATE}))`, "{{instance}}"),
        ],
      },
      {
        title: "Events a second",
        about: "What happened, as the log tells.",
        unit: "short",
        queries: [q(`sum by (event) (rate(idmint_events_total{${SERVER}}${RATE}))`, "{{event}}")],
      },
      {
        title: "Servers heard of",
        about: "Servers on the store that each one heard of a moment ago, itself included.",
        unit: "short",
        queries: [q(`max by (instance) (idmint_servers{${SERVER}})`, "{{instance}}")],
      },
      {
        title: "Processes that answer",
        about: "Below the number of processes, one does not tell its metrics.",
        unit: "short",
        queries: [q(`sum by (instance) (idmint_process_up{${SERVER}})`, "{{instance}}")],
      },
      {
        title: "Tags",
        about: "Tags that each server works with.",
        unit: "short",
        queries: [q(`max by (instance) (idmint_tags{${SERVER}})`, "{{instance}}")],
      },
    ],
  },
];
