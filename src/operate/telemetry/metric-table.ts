/** Every metric, with its labels. docs/reference/metrics.md is generated from this table. */
export const metricTable = {
  weir_requests_total: { type: 'counter', labels: ['status'], help: 'Responses by status' },
  weir_rejections_total: { type: 'counter', labels: ['code'], help: 'Refusals by code' },
  weir_outcomes_total: {
    type: 'counter',
    labels: ['model', 'lane', 'outcome'],
    help: 'Settled requests by outcome',
  },
  weir_tokens_total: {
    type: 'counter',
    labels: ['model', 'lane', 'kind'],
    help: 'Tokens of settled requests: input, cached_input (a part of input) and output',
  },
  weir_cache_tokens_total: {
    type: 'counter',
    labels: ['workspace', 'key', 'model', 'kind'],
    help: 'Tokens that engines counted, by key and model: input, and cached_input (a part of input). The latest 2000',
  },
  weir_cache_misses_total: {
    type: 'counter',
    labels: ['model', 'lane', 'cause'],
    help: 'Prompts of which most was not cached, by likely cause: first_use, prefix_changed, evicted, moved',
  },
  weir_queue_wait_seconds: {
    type: 'histogram',
    labels: ['model', 'lane'],
    help: 'Time spent waiting for admission',
  },
  weir_first_token_seconds: {
    type: 'histogram',
    labels: ['model', 'lane'],
    help: 'Time from admission to the first token',
  },
  weir_engine_seconds: { type: 'histogram', labels: ['model', 'lane'], help: 'Time from admission to settlement' },
  weir_in_flight_requests: {
    type: 'gauge',
    labels: ['lane'],
    help: 'Admitted requests whose engine call has not ended',
  },
  weir_committed_tokens: { type: 'gauge', labels: ['lane'], help: 'Tokens charged to the budget' },
  weir_queue_depth: { type: 'gauge', labels: ['lane'], help: 'Requests waiting for admission' },
  weir_lane_max_concurrent_requests: { type: 'gauge', labels: ['lane'], help: 'Limit of requests in flight' },
  weir_lane_token_budget: { type: 'gauge', labels: ['lane'], help: 'Limit of committed tokens' },
  weir_lane_max_queue_depth: { type: 'gauge', labels: ['lane'], help: 'Limit of waiting requests' },
  weir_lane_max_wait_seconds: { type: 'gauge', labels: ['lane'], help: 'Limit of the time in the queue' },
  weir_replica_in_flight_requests: {
    type: 'gauge',
    labels: ['lane'],
    help: "This replica's part of weir_in_flight_requests, which is of the whole service",
  },
  weir_replica_queue_depth: {
    type: 'gauge',
    labels: ['lane'],
    help: "This replica's part of weir_queue_depth, which is of the whole service",
  },
  weir_coordinated: {
    type: 'gauge',
    labels: [],
    help: '1 while this replica coordinates with the others; 0 while Redis is unreachable',
  },
  weir_replicas: { type: 'gauge', labels: [], help: 'Replicas, when Redis last answered' },
  weir_engine_up: {
    type: 'gauge',
    labels: ['lane', 'address'],
    help: '1 while the address of an engine answers, 0 while it is down',
  },
  weir_engine_breaches_total: {
    type: 'counter',
    labels: ['model'],
    help: 'Answers with more than the request allowed, by model',
  },
  weir_contradicted_counts_total: {
    type: 'counter',
    labels: ['model'],
    help: 'Token counts of engines that contradict the text, by model',
  },
  weir_spend_limits_reached_total: {
    type: 'counter',
    labels: ['workspace'],
    help: 'Spend limits reached, soft or hard',
  },
  weir_ledger_lag_seconds: { type: 'gauge', labels: [], help: 'Age of the oldest row that is not durable yet' },
  weir_journal_bytes: { type: 'gauge', labels: [], help: 'Bytes of the journal that are not in the database yet' },
  weir_journal_lag_seconds: {
    type: 'gauge',
    labels: [],
    help: 'Age of the oldest row in the journal that is not in the database yet',
  },
  weir_ledger_healthy: { type: 'gauge', labels: [], help: '1 while usage can be recorded' },
  weir_ledger_refused_rows: {
    type: 'gauge',
    labels: [],
    help: 'Ledger rows that the database refuses, which are set aside',
  },
  weir_held_bytes: {
    type: 'gauge',
    labels: [],
    help: 'Memory for bodies and for answers that were not read yet',
  },
  weir_event_loop_delay_seconds: {
    type: 'gauge',
    labels: [],
    help: '99th percentile of the event loop delay since the last scrape',
  },
  weir_build_info: {
    type: 'gauge',
    labels: ['version', 'node'],
    help: 'Always 1; the labels show the running version',
  },
  process_resident_memory_bytes: { type: 'gauge', labels: [], help: 'Resident memory' },
  process_cpu_seconds_total: { type: 'counter', labels: [], help: 'User and system CPU time' },
} as const satisfies Record<string, MetricDescription>

interface MetricDescription {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labels: readonly string[]
  readonly help: string
}

export type MetricName = keyof typeof metricTable

/** The names of the metrics of one type. */
export type MetricOf<Type extends MetricDescription['type']> = {
  [Name in MetricName]: (typeof metricTable)[Name]['type'] extends Type ? Name : never
}[MetricName]
