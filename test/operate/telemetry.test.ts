import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it, type TestContext } from 'node:test'
import type { LaneStatus } from '../../src/queue/lane.ts'
import type { Job } from '../../src/engines/job.ts'
import type { EngineAddressState } from '../../src/engines/engine.ts'
import { operations } from '../../src/operate/telemetry/gen-ai-metrics.ts'
import { metricTable } from '../../src/operate/telemetry/metric-table.ts'
import { metricsText, type MetricsFormat } from '../../src/operate/telemetry/metrics-text.ts'
import { createTelemetry, type Telemetry } from '../../src/operate/telemetry/telemetry.ts'
import { limitedEndpoints } from '../../src/workspaces/keys/key-limits.ts'
import { noBatchLoad } from '../support/lane.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { eventually } from '../support/waiting.ts'

type Parts = Parameters<Telemetry['measure']>[0]

const lane = (changes: Partial<LaneStatus>): LaneStatus => ({
  limits: { tokenBudget: 100, maxConcurrentRequests: 2, maxQueueDepth: 3, maxWaitMs: 4500 },
  inFlightRequests: 0,
  committedTokens: 0,
  queueDepth: 0,
  batch: noBatchLoad,
  ...changes,
})

const batch = { inFlightRequests: 2, committedTokens: 20, queueDepth: 9 }

function stage(t: TestContext, level = 'silent', genAiNames: Parts['genAiNames'] = 'both') {
  const written: string[] = []
  const telemetry = createTelemetry(level, '1.2.3', { write: (line) => void written.push(line), flush: async () => {} })
  t.after(() => telemetry.close())
  const state = { coordination: 'joined', healthy: true }
  const load = { running: 9, waiting: 2, cacheUse: 0.5 }
  let loads: readonly (typeof load | undefined)[] = []
  const ledger = { lagMs: 1500, journalBytes: 77, journalLagMs: 2500 }
  telemetry.measure({
    admission: {
      status: async () => new Map([['m', lane({ inFlightRequests: 5, committedTokens: 60, queueDepth: 7, batch })]]),
      ownStatus: () => new Map([['m', lane({ inFlightRequests: 3, queueDepth: 4 })]]),
    },
    coordination: { state: () => state.coordination, replicas: () => 6 },
    ledger: { status: () => ({ ...ledger, healthy: state.healthy }) },
    memory: { held: () => 88 },
    readEngineLoads: async () => void (loads = [load]),
    engineAddresses: () => [
      ['m', { url: 'http://a', isUp: true, load: loads[0] } as EngineAddressState],
      ['m', { url: 'http://b', isUp: false } as EngineAddressState],
    ],
    engineStates: () => [{ lane: 'm', state: 'ready', bytes: 5 }],
    engineKind: () => 'vllm',
    genAiNames,
    disk: async () => ({ size: 1000, free: 300 }),
    maxJournalBytes: 700,
  } as unknown as Parts)
  const text = async (format: MetricsFormat = 'prometheus'): Promise<string> =>
    metricsText(await telemetry.metrics(), format)
  const scrape = async (): Promise<readonly string[]> =>
    (await text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return { telemetry, written, state, text, scrape }
}

const row = sampleRow('r', {
  model: 'm',
  lane: 'm',
  inputTokens: 10,
  cachedInputTokens: 4,
  outputTokens: 6,
  queueWaitMs: 250,
  firstTokenMs: 500,
  durationMs: 2000,
})

const job = {
  model: { id: 'm' },
  deployment: { lane: 'm', engine: { kind: 'vllm', urls: ['http://a'] } },
  expectedInput: { least: 10, most: 20 },
} as unknown as Job

function useAll(telemetry: Telemetry): void {
  telemetry.requestOver({ status: 200 }, {}, undefined)
  telemetry.requestOver({ status: 200 }, {}, undefined)
  telemetry.requestOver({ status: 429 }, { code: 'rate_limit_exceeded' }, undefined)
  telemetry.settled(row)
  telemetry.pastLimit(row)
  telemetry.contradicted(job, 99)
  telemetry.contradicted(job, 98)
  telemetry.engineStarted('m', 40_000)
  telemetry.engineFailed('m')
  telemetry.spendLimitReached('acme')
  telemetry.alertSent('ops', 'sent')
  telemetry.alertsWaited(1500)
  telemetry.certificateServed(new Date(5000))
  telemetry.reconciled(2, 6000)
  telemetry.rowsSetAside(2)
  telemetry.rowsSetAside(1)
  const blocks = [{ own: 1, chain: 1, characters: 10 }]
  telemetry.cacheUsed({ ...row, cachedInputTokens: 0 }, { blocks } as never, { here: 0, anywhere: 0 } as never)
  telemetry.cacheUsed(row, undefined, undefined)
}

describe('the metrics of a service', () => {
  it('show what has happened, and the state of its parts', async (t) => {
    const { telemetry, scrape } = stage(t)
    useAll(telemetry)
    const lines = (await scrape()).filter((line) => !/^process_|^gen_ai|_bucket|event_loop/.test(line))
    assert.deepEqual(lines.toSorted(), [
      'weir_alert_deliveries_total{endpoint="ops",result="sent"} 1',
      'weir_alert_oldest_undelivered_seconds 1.5',
      'weir_batch_committed_tokens{lane="m"} 20',
      'weir_batch_in_flight_requests{lane="m"} 2',
      'weir_batch_queue_depth{lane="m"} 9',
      `weir_build_info{version="1.2.3",node="${process.versions.node}"} 1`,
      'weir_cache_misses_total{model="m",lane="m",cause="first_use"} 1',
      'weir_cache_tokens_total{workspace="ws_1",key="key_1",model="m",kind="cached_input"} 4',
      'weir_cache_tokens_total{workspace="ws_1",key="key_1",model="m",kind="input"} 20',
      'weir_certificate_end_timestamp_seconds 5',
      'weir_committed_tokens{lane="m"} 60',
      'weir_contradicted_counts_total{model="m"} 2',
      'weir_coordinated 1',
      'weir_data_disk_bytes 1000',
      'weir_data_disk_free_bytes 300',
      'weir_engine_breaches_total{model="m"} 1',
      'weir_engine_failures_total{lane="m"} 1',
      'weir_engine_memory_bytes{lane="m"} 5',
      'weir_engine_reported_cache_use{lane="m",address="http://a"} 0.5',
      'weir_engine_reported_running{lane="m",address="http://a"} 9',
      'weir_engine_reported_waiting{lane="m",address="http://a"} 2',
      'weir_engine_seconds_count{model="m",lane="m"} 1',
      'weir_engine_seconds_sum{model="m",lane="m"} 2',
      'weir_engine_start_seconds_count{lane="m"} 1',
      'weir_engine_start_seconds_sum{lane="m"} 40',
      'weir_engine_state{lane="m",state="ready"} 1',
      'weir_engine_up{lane="m",address="http://a"} 1',
      'weir_engine_up{lane="m",address="http://b"} 0',
      'weir_first_token_seconds_count{model="m",lane="m"} 1',
      'weir_first_token_seconds_sum{model="m",lane="m"} 0.5',
      'weir_held_bytes 88',
      'weir_in_flight_requests{lane="m"} 5',
      'weir_journal_bytes 77',
      'weir_journal_lag_seconds 2.5',
      'weir_journal_max_bytes 700',
      'weir_lane_max_concurrent_requests{lane="m"} 2',
      'weir_lane_max_queue_depth{lane="m"} 3',
      'weir_lane_max_wait_seconds{lane="m"} 4.5',
      'weir_lane_token_budget{lane="m"} 100',
      'weir_ledger_healthy 1',
      'weir_ledger_lag_seconds 1.5',
      'weir_ledger_refused_rows 3',
      'weir_outcomes_total{model="m",lane="m",outcome="completed"} 1',
      'weir_queue_depth{lane="m"} 7',
      'weir_queue_wait_seconds_count{model="m",lane="m"} 1',
      'weir_queue_wait_seconds_sum{model="m",lane="m"} 0.25',
      'weir_reconcile_problems 2',
      'weir_reconcile_timestamp_seconds 6',
      'weir_rejections_total{code="rate_limit_exceeded"} 1',
      'weir_replica_in_flight_requests{lane="m"} 3',
      'weir_replica_queue_depth{lane="m"} 4',
      'weir_replicas 6',
      'weir_requests_total{status="200"} 2',
      'weir_requests_total{status="429"} 1',
      'weir_spend_limits_reached_total{workspace="acme"} 1',
      'weir_tokens_total{model="m",lane="m",kind="cached_input"} 4',
      'weir_tokens_total{model="m",lane="m",kind="input"} 10',
      'weir_tokens_total{model="m",lane="m",kind="output"} 6',
    ])
  })

  it('show what the process uses', async (t) => {
    const { scrape } = stage(t)
    const valueOf = async (name: string) => {
      const line = (await scrape()).find((it) => it.startsWith(`${name} `)) ?? assert.fail(name)
      return Number(line.slice(name.length))
    }
    let delay = 0
    await eventually('the event loop is measured', async () => {
      delay = await valueOf('weir_event_loop_delay_seconds')
      return delay > 0
    })
    assert.ok(delay < 600, `${delay} s`)
    const { user, system } = process.cpuUsage()
    const used = await valueOf('process_cpu_seconds_total')
    assert.ok(used >= (user + system) / 1e6 && used < 2 * performance.now(), `${used} s`)
    assert.ok((await valueOf('process_resident_memory_bytes')) > 1e6)
  })

  it('are those of the table, each with its labels, its type and its help', async (t) => {
    const { telemetry, text, scrape } = stage(t)
    useAll(telemetry)
    const seen = new Map<string, readonly string[]>()
    for (const line of await scrape()) {
      const [, name = '', inner = ''] = /^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? /.exec(line) ?? []
      const labels = [...inner.matchAll(/(\w+)=/g)].map(([, label]) => label ?? '').filter((label) => label !== 'le')
      seen.set(name, labels)
    }
    const table = Object.entries(metricTable).map(([name, { labels }]) => [name, labels] as const)
    assert.deepEqual(Object.fromEntries(seen), Object.fromEntries(table))
    const plain = await text()
    for (const [name, { help, type }] of Object.entries(metricTable)) {
      assert.ok(plain.includes(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`), name)
    }
  })

  it('have the name of OpenTelemetry for the operation of each endpoint', () => {
    assert.deepEqual(Object.keys(operations).toSorted(), limitedEndpoints.toSorted())
  })

  it('include those of OpenTelemetry, by its names', async (t) => {
    const { telemetry, scrape } = stage(t)
    telemetry.settled(row)
    telemetry.settled({ ...row, endpoint: '/embeddings', outcome: 'engine_failed', errorCode: 'upstream_error' })
    const lines = (await scrape()).filter((line) => line.startsWith('gen_ai') && !line.includes('_bucket'))
    const place = (operation: string) =>
      `gen_ai_operation_name="${operation}",gen_ai_request_model="m",gen_ai_provider_name="vllm"`
    const [chat, embeddings] = [place('chat'), place('embeddings')]
    assert.deepEqual(lines.filter((line) => line.includes(chat)).toSorted(), [
      `gen_ai_client_inference_operation_input_tokens_count{${chat}} 1`,
      `gen_ai_client_inference_operation_input_tokens_sum{${chat}} 10`,
      `gen_ai_client_inference_operation_output_tokens_count{${chat}} 1`,
      `gen_ai_client_inference_operation_output_tokens_sum{${chat}} 6`,
      `gen_ai_client_inference_usage_cache_read_input_tokens_total{${chat},gen_ai_token_modality="unknown"} 4`,
      `gen_ai_client_inference_usage_input_tokens_total{${chat},gen_ai_token_modality="unknown"} 10`,
      `gen_ai_client_inference_usage_output_tokens_total{${chat},gen_ai_token_modality="text"} 6`,
      `gen_ai_client_token_usage_count{${chat},gen_ai_token_type="input"} 1`,
      `gen_ai_client_token_usage_count{${chat},gen_ai_token_type="output"} 1`,
      `gen_ai_client_token_usage_sum{${chat},gen_ai_token_type="input"} 10`,
      `gen_ai_client_token_usage_sum{${chat},gen_ai_token_type="output"} 6`,
      `gen_ai_server_request_duration_seconds_count{${chat},error_type=""} 1`,
      `gen_ai_server_request_duration_seconds_sum{${chat},error_type=""} 2.25`,
      `gen_ai_server_time_per_output_token_seconds_count{${chat}} 1`,
      `gen_ai_server_time_per_output_token_seconds_sum{${chat}} 0.3`,
      `gen_ai_server_time_to_first_token_seconds_count{${chat}} 1`,
      `gen_ai_server_time_to_first_token_seconds_sum{${chat}} 0.75`,
    ])
    // A request that failed has a duration, and no time of its tokens.
    assert.ok(
      lines.includes(`gen_ai_server_request_duration_seconds_count{${embeddings},error_type="upstream_error"} 1`),
    )
    assert.ok(!lines.some((line) => line.includes('_token_seconds_count') && line.includes(embeddings)))
  })

  it('name tokens by the current names, the former ones, or both', async (t) => {
    const families = async (genAiNames: Parts['genAiNames']): Promise<readonly boolean[]> => {
      const text = await stage(t, 'silent', genAiNames).text()
      return ['gen_ai_client_inference_usage_input_tokens_total', 'gen_ai_client_token_usage'].map((name) =>
        text.includes(`# TYPE ${name} `),
      )
    }
    assert.deepEqual(await families('current'), [true, false])
    assert.deepEqual(await families('former'), [false, true])
    assert.deepEqual(await families('both'), [true, true])
  })

  it('are what promtool accepts', async (t) => {
    const { telemetry, text } = stage(t)
    useAll(telemetry)
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: await text(),
      encoding: 'utf8',
    })
    assert.deepEqual([status, stdout, stderr], [0, '', ''])
  })

  it('have the traces of requests as exemplars in OpenMetrics: of each bucket, the newest', async (t) => {
    const { telemetry, text } = stage(t)
    t.mock.timers.enable({ apis: ['Date'], now: 1_700_000_000_500 })
    telemetry.settled(row, 'a'.repeat(32))
    telemetry.settled(row, 'b'.repeat(32))
    telemetry.settled({ ...row, firstTokenMs: 900_000 }, 'c'.repeat(32))
    telemetry.settled(row)
    const lines = (await text('openmetrics')).split('\n')
    const traced = lines.filter((line) => line.includes(' # '))
    const place = 'model="m",lane="m"'
    assert.deepEqual(
      traced.filter((line) => line.startsWith('weir_first_token_seconds')),
      [
        `weir_first_token_seconds_bucket{${place},le="0.5"} 3 # {trace_id="${'b'.repeat(32)}"} 0.5 1700000000.5`,
        `weir_first_token_seconds_bucket{${place},le="+Inf"} 4 # {trace_id="${'c'.repeat(32)}"} 900 1700000000.5`,
      ],
    )
    // A start of an engine belongs to no request.
    const histograms = Object.entries(metricTable).flatMap(([name, { type }]) =>
      type === 'histogram' && name !== 'weir_engine_start_seconds' ? [name] : [],
    )
    assert.deepEqual(
      [...new Set(traced.map((line) => line.split('_bucket', 1).join()))].toSorted(),
      histograms.toSorted(),
    )
    assert.doesNotMatch(await text(), /trace_id/)
  })

  it('have no exemplars while nothing is traced', async (t) => {
    const { telemetry, text } = stage(t)
    telemetry.settled(row)
    assert.doesNotMatch(await text('openmetrics'), /trace_id/)
  })

  it('are families of their own in OpenMetrics, whatever suffix is left out', async (t) => {
    const { telemetry, text } = stage(t)
    useAll(telemetry)
    const lines = (await text('openmetrics')).split('\n')
    assert.deepEqual(lines.slice(-2), ['# EOF', ''])
    const families = lines.flatMap((line) => (line.startsWith('# TYPE ') ? [line.split(' ')] : []))
    assert.equal(new Set(families.map(([, , name]) => name)).size, Object.keys(metricTable).length)
    for (const [, , name = '', type] of families) assert.equal(name.endsWith('_total'), false, `${name} ${type}`)
    assert.ok(lines.includes('# TYPE weir_requests counter'))
    assert.ok(lines.includes('weir_requests_total{status="200"} 2'))
  })

  it('report when the replica is partitioned, and when usage cannot be recorded', async (t) => {
    const { state, scrape } = stage(t)
    for (const [coordination, value] of [
      ['alone', 1],
      ['joined', 1],
      ['apart', 0],
    ] as const) {
      state.coordination = coordination
      assert.ok((await scrape()).includes(`weir_coordinated ${value}`), coordination)
    }
    state.healthy = false
    assert.ok((await scrape()).includes('weir_ledger_healthy 0'))
  })
})

describe('the log of a service', () => {
  it('has a line for each request, and for problems of an engine, each deployment once', (t) => {
    const { telemetry, written } = stage(t, 'info')
    useAll(telemetry)
    const lines = written.map((line) => JSON.parse(line) as Record<string, unknown>)
    assert.deepEqual(
      lines.map(({ time: _time, level, msg, ...rest }) => [level, String(msg).slice(0, 21), rest]),
      [
        [30, 'request', { status: 200 }],
        [30, 'request', { status: 200 }],
        [30, 'request', { status: 429, code: 'rate_limit_exceeded' }],
        [40, 'engine went past the ', { request_id: 'r', model: 'm', lane: 'm', max_tokens: 10 }],
        [
          40,
          'the token counts of a',
          { model: 'm', lane: 'm', kind: 'vllm', urls: ['http://a'], counted: 99, least: 10, most: 20 },
        ],
      ],
    )
    assert.deepEqual(telemetry.contradictedCounts(), [
      { lane: 'm', kind: 'vllm', answers: 2, counted: 98, least: 10, most: 20 },
    ])
    telemetry.requestOver({ status: 500 }, {}, new Error('it broke'))
    assert.match(written.at(-1) ?? '', /"level":50.*"err":.*it broke.*"request failed"/)
  })

  it('has no requests if its level is warning', (t) => {
    const { telemetry, written } = stage(t, 'warn')
    telemetry.requestOver({ status: 200 }, {}, undefined)
    assert.deepEqual(written, [])
  })
})
