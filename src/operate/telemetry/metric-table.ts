type Described<Type extends string> = { readonly type: Type; readonly labels: readonly string[]; readonly help: string }

const described =
  <const Type extends string>(type: Type) =>
  (help: string, ...labels: readonly string[]): Described<Type> => ({ type, labels, help })
const counter = described('counter')
const gauge = described('gauge')
const histogram = described('histogram')

/** Every metric, with its labels. docs/reference/metrics.md is generated from this table. */
export const metricTable = {
  weir_requests_total: counter('Responses by status', 'status'),
  weir_rejections_total: counter('Refusals by code', 'code'),
  weir_outcomes_total: counter('Settled requests by outcome', 'model', 'lane', 'outcome'),
  weir_tokens_total: counter(
    'Tokens of settled requests: input, cached_input (a part of input) and output',
    'model',
    'lane',
    'kind',
  ),
  weir_cache_tokens_total: counter(
    'Tokens that engines counted, by key and model: input, and cached_input (a part of input). The latest 2000',
    'workspace',
    'key',
    'model',
    'kind',
  ),
  weir_cache_misses_total: counter(
    'Prompts of which most was not cached, by likely cause: first_use, prefix_changed, evicted, moved',
    'model',
    'lane',
    'cause',
  ),
  weir_queue_wait_seconds: histogram('Time spent waiting for admission', 'model', 'lane'),
  weir_first_token_seconds: histogram('Time from admission to the first token', 'model', 'lane'),
  weir_engine_seconds: histogram('Time from admission to settlement', 'model', 'lane'),
  weir_in_flight_requests: gauge('Admitted requests whose engine call has not ended', 'lane'),
  weir_committed_tokens: gauge('Tokens charged to the budget', 'lane'),
  weir_queue_depth: gauge('Requests waiting for admission', 'lane'),
  weir_batch_in_flight_requests: gauge('The part of batch work in weir_in_flight_requests', 'lane'),
  weir_batch_committed_tokens: gauge('The part of batch work in weir_committed_tokens', 'lane'),
  weir_batch_queue_depth: gauge('Batch work waiting for idle capacity, not in weir_queue_depth', 'lane'),
  weir_lane_max_concurrent_requests: gauge('Limit of requests in flight', 'lane'),
  weir_lane_token_budget: gauge('Limit of committed tokens', 'lane'),
  weir_lane_max_queue_depth: gauge('Limit of waiting requests', 'lane'),
  weir_lane_max_wait_seconds: gauge('Limit of the time in the queue', 'lane'),
  weir_replica_in_flight_requests: gauge(
    "This replica's part of weir_in_flight_requests, which is of the whole service",
    'lane',
  ),
  weir_replica_queue_depth: gauge("This replica's part of weir_queue_depth, which is of the whole service", 'lane'),
  weir_coordinated: gauge('1 while this replica coordinates with the others; 0 while Redis is unreachable'),
  weir_replicas: gauge('Replicas, when Redis last answered'),
  weir_engine_up: gauge('1 while the address of an engine answers, 0 while it is down', 'lane', 'address'),
  weir_engine_reported_running: gauge(
    'Requests that the server of an engine is working on by its own count, those of others included',
    'lane',
    'address',
  ),
  weir_engine_reported_waiting: gauge(
    'Requests that wait at the server of an engine, by its own count',
    'lane',
    'address',
  ),
  weir_engine_reported_cache_use: gauge(
    'The part of its cache that the server of an engine uses, from 0 to 1',
    'lane',
    'address',
  ),
  weir_engine_state: gauge('1 for the state that an engine on demand is in', 'lane', 'state'),
  weir_engine_memory_bytes: gauge('What an engine on demand takes of the budget of its device', 'lane'),
  weir_engine_start_seconds: histogram('Time from the start of an engine on demand until it is ready', 'lane'),
  weir_engine_failures_total: counter('Failed starts and crashes of engines on demand', 'lane'),
  weir_engine_breaches_total: counter('Answers with more than the request allowed, by model', 'model'),
  weir_contradicted_counts_total: counter('Token counts of engines that contradict the text, by model', 'model'),
  weir_spend_limits_reached_total: counter('Spend limits reached, soft or hard', 'workspace'),
  weir_alert_deliveries_total: counter(
    'Attempts to deliver an event to an endpoint: sent, retried later, or failed for good',
    'endpoint',
    'result',
  ),
  weir_alert_oldest_undelivered_seconds: gauge(
    'Age of the oldest event that was not delivered to a configured endpoint',
  ),
  weir_ledger_lag_seconds: gauge('Age of the oldest row that is not durable yet'),
  weir_journal_bytes: gauge('Bytes of the journal that are not in the database yet'),
  weir_journal_max_bytes: gauge('Limit of weir_journal_bytes: above it, requests are refused'),
  weir_journal_lag_seconds: gauge('Age of the oldest row in the journal that is not in the database yet'),
  weir_ledger_healthy: gauge('1 while usage can be recorded'),
  weir_ledger_refused_rows: gauge('Ledger rows that the database refuses, which are set aside'),
  weir_reconcile_problems: gauge('What did not match when the ledger was last reconciled; missing until then'),
  weir_reconcile_timestamp_seconds: gauge('When the ledger was last reconciled, as Unix time; missing until then'),
  weir_data_disk_bytes: gauge('Size of the disk of the data directory'),
  weir_data_disk_free_bytes: gauge('Free bytes on the disk of the data directory'),
  weir_certificate_end_timestamp_seconds: gauge(
    'When the certificate of server.tls ends, as Unix time; missing without one',
  ),
  weir_held_bytes: gauge('Memory for bodies and for answers that were not read yet'),
  weir_event_loop_delay_seconds: gauge('99th percentile of the event loop delay since the last scrape'),
  weir_build_info: gauge('Always 1; the labels show the running version', 'version', 'node'),
  gen_ai_server_request_duration_seconds: histogram(
    'Time from the arrival of a request to its settlement',
    'gen_ai_operation_name',
    'gen_ai_request_model',
    'gen_ai_provider_name',
    'error_type',
  ),
  gen_ai_server_time_to_first_token_seconds: histogram(
    'Time from the arrival of a request to the first token, of complete answers',
    'gen_ai_operation_name',
    'gen_ai_request_model',
    'gen_ai_provider_name',
  ),
  gen_ai_server_time_per_output_token_seconds: histogram(
    'Time for each token after the first one, of complete answers',
    'gen_ai_operation_name',
    'gen_ai_request_model',
    'gen_ai_provider_name',
  ),
  gen_ai_client_inference_usage_input_tokens_total: counter(
    'Input tokens, with those that were cached',
    'gen_ai_operation_name',
    'gen_ai_request_model',
    'gen_ai_provider_name',
    'gen_ai_token_modality',
  ),
  gen_ai_client_inference_usage_cache_read_input_tokens_total: counter(
    'Input tokens that the engine had in its cache',
    'gen_ai_operation_name',
    'gen_ai_request_model',
    'gen_ai_provider_name',
    'gen_ai_token_modality',
  ),
  gen_ai_client_inference_usage_output_tokens_total: counter(
    'Output tokens',
    'gen_ai_operation_name',
    'gen_ai_request_model',
    'gen_ai_provider_name',
    'gen_ai_token_modality',
  ),
  gen_ai_client_inference_operation_input_tokens: histogram(
    'Input tokens of each request',
    'gen_ai_operation_name',
    'gen_ai_request_model',
    'gen_ai_provider_name',
  ),
  gen_ai_client_inference_operation_output_tokens: histogram(
    'Output tokens of each request',
    'gen_ai_operation_name',
    'gen_ai_request_model',
    'gen_ai_provider_name',
  ),
  gen_ai_client_token_usage: histogram(
    'Tokens of each request, if metrics.gen_ai_names is former or both',
    'gen_ai_operation_name',
    'gen_ai_request_model',
    'gen_ai_provider_name',
    'gen_ai_token_type',
  ),
  process_resident_memory_bytes: gauge('Resident memory'),
  process_cpu_seconds_total: counter('User and system CPU time'),
}

export type MetricName = keyof typeof metricTable

/** The names of the metrics of one type. */
export type MetricOf<Type extends 'counter' | 'gauge' | 'histogram'> = {
  [Name in MetricName]: (typeof metricTable)[Name]['type'] extends Type ? Name : never
}[MetricName]
