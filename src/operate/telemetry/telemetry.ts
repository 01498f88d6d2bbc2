import { monitorEventLoopDelay } from 'node:perf_hooks'
import { pino, type Logger } from 'pino'
import type { LaneStatus } from '../../queue/lane.ts'
import type { Job } from '../../engines/job.ts'
import type { DiskSpace } from '../../shared/disk-room.ts'
import type { ByteBudget } from '../../shared/byte-budget.ts'
import type { LedgerRow } from '../../ledger/rows.ts'
import type { PromptBlocks } from '../../engines/prefix/prompt-blocks.ts'
import type { CacheUse } from '../../engines/cache-use.ts'
import type { ContradictedCounts } from '../../engines/contradicted-counts.ts'
import { cacheUseRecord } from './cache-use.ts'
import { doubtfulCounts } from './doubtful-counts.ts'
import type { RequestLine, RequestNotes } from '../../server/request-line.ts'
import { genAiMetrics, type GenAiNames } from './gen-ai-metrics.ts'
import type { MetricOf } from './metric-table.ts'
import { createMetrics, labels, memo, type MetricFamily, type Metrics } from './metrics.ts'
import type { Admission } from '../../queue/admission.ts'
import type { Coordination } from '../../cluster/coordination.ts'
import type { EngineAddressState, Placement } from '../../engines/engine.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/** Logs and metrics. Neither ever contains a prompt, an answer or a key. */
export interface Telemetry {
  readonly log: Logger
  /** Adds the gauges of these parts to the metrics. */
  measure(parts: {
    readonly admission: Admission
    readonly coordination: Coordination
    readonly ledger: Ledger
    readonly memory: ByteBudget
    /** Asks the servers of engines for their load. */
    readEngineLoads(): Promise<void>
    /** The addresses of all engines, by lane. */
    engineAddresses(): Iterable<readonly [lane: string, address: EngineAddressState]>
    /** The engines that start when they are needed. */
    engineStates(): readonly { readonly lane: string; readonly state: string; readonly bytes: number }[]
    /** The kind of engine behind a lane. */
    engineKind(lane: string): string | undefined
    readonly genAiNames: GenAiNames
    /** The disk of the data directory. */
    disk(): Promise<DiskSpace>
    readonly maxJournalBytes: number
  }): void
  requestOver(line: RequestLine, notes: RequestNotes, failure: unknown): void
  /** `traceId`: undefined if the request is not traced. */
  settled(row: LedgerRow, traceId?: string): void
  /** An engine generated more than a request allowed, or reported more than is possible. */
  pastLimit(row: LedgerRow): void
  /** An engine's count of the input contradicts the estimate. */
  contradicted(job: Job, count: number): void
  /** The deployments whose counts contradicted the estimate since the start. */
  contradictedCounts(): readonly ContradictedCounts[]
  /** The caller got an answer. Includes how much of its prompt should have been cached, if that is known. */
  cacheUsed(row: LedgerRow, prompt: PromptBlocks | undefined, placement: Placement | undefined): void
  readonly cacheUse: CacheUse
  /** An engine on demand is ready, after this long. */
  engineStarted(lane: string, ms: number): void
  /** An engine on demand could not start, or has crashed. */
  engineFailed(lane: string): void
  /** A workspace has reached its soft or hard spend limit. */
  spendLimitReached(workspace: string): void
  /** An attempt to deliver an event has ended. */
  alertSent(endpoint: string, result: 'sent' | 'retried' | 'failed'): void
  /** How long the oldest event waits to be delivered. */
  alertsWaited(ms: number): void
  /** Counts ledger rows that are set aside. */
  rowsSetAside(count: number): void
  /** The certificate of the public listener is valid until then. */
  certificateServed(validUntil: Date): void
  /** The ledger was reconciled at this time (Unix ms), and this many things do not match. */
  reconciled(problems: number, at: number): void
  /** The current values of all metrics. */
  metrics(): Promise<readonly MetricFamily[]>
  close(): Promise<void>
}

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

/** Log lines are written to stderr unless `lines` is given. */
export function createTelemetry(level: string, version: string, lines: LogDestination = logDestination(2)): Telemetry {
  const log = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, lines)
  const metrics = createMetrics()
  const requests = metrics.counter('weir_requests_total')
  const rejections = metrics.counter('weir_rejections_total')
  const spendLimits = metrics.counter('weir_spend_limits_reached_total')
  const alerts = metrics.counter('weir_alert_deliveries_total')
  let alertsWaitMs = 0
  metrics.reading('weir_alert_oldest_undelivered_seconds', () => [['', alertsWaitMs / 1000]])
  const engineStarts = metrics.histogram('weir_engine_start_seconds', SECONDS)
  const engineFailures = metrics.counter('weir_engine_failures_total')
  const breaches = metrics.counter('weir_engine_breaches_total')
  const contradictions = metrics.counter('weir_contradicted_counts_total')
  const doubtful = doubtfulCounts()
  const cacheUse = cacheUseRecord()
  const misses = metrics.counter('weir_cache_misses_total')
  metrics.reading('weir_cache_tokens_total', () => cacheTokens(cacheUse))
  const settlement = settlementMetrics(metrics)
  let genAi: ReturnType<typeof genAiMetrics> = () => {}
  let setAside = 0
  metrics.reading('weir_ledger_refused_rows', () => [['', setAside]])
  metrics.reading('weir_build_info', () => [[labels({ version, node: process.versions.node }), 1]])
  let certificateEnd: number | undefined
  metrics.reading('weir_certificate_end_timestamp_seconds', () =>
    certificateEnd === undefined ? [] : [['', certificateEnd]],
  )
  let reconciliation: { readonly problems: number; readonly at: number } | undefined
  metrics.reading('weir_reconcile_problems', () => (reconciliation ? [['', reconciliation.problems]] : []))
  metrics.reading('weir_reconcile_timestamp_seconds', () => (reconciliation ? [['', reconciliation.at / 1000]] : []))
  let lanes: ReadonlyMap<string, LaneStatus> = new Map()
  let disk: DiskSpace | undefined
  /** Reads the lanes and the disk once, for all of their gauges. */
  let readParts = async (): Promise<void> => {}
  const delay = processGauges(metrics)
  const byStatus = memo((status: number) => labels({ status }))
  const byCode = memo((code: string) => labels({ code }))

  return {
    log,
    requestOver(line, notes, failure) {
      requests.add(byStatus(line.status))
      if (notes.code !== undefined) rejections.add(byCode(notes.code))
      if (failure !== undefined) log.error({ ...line, ...notes, err: failure }, 'request failed')
      // Written without pino, which would take ten times as long, because every request logs this line.
      else if (log.isLevelEnabled('info')) lines.write(requestText(line, notes, Date.now()))
    },
    measure({ admission, coordination, ledger, memory, engineAddresses, engineKind, genAiNames, ...rest }) {
      genAi = genAiMetrics(metrics, genAiNames, engineKind)
      readParts = async () => {
        // The gauges of a disk that cannot be read are left out.
        disk = await rest.disk().catch(() => undefined)
        lanes = await admission.status()
        await rest.readEngineLoads()
      }
      metrics.reading('weir_data_disk_bytes', () => (disk ? [['', disk.size]] : []))
      metrics.reading('weir_data_disk_free_bytes', () => (disk ? [['', disk.free]] : []))
      metrics.reading('weir_journal_max_bytes', () => [['', rest.maxJournalBytes]])
      laneGauges(metrics, () => lanes)
      replicaGauges(metrics, admission, coordination)
      ledgerGauges(metrics, ledger)
      metrics.reading('weir_held_bytes', () => [['', memory.held()]])
      engineGauges(metrics, engineAddresses)
      metrics.reading('weir_engine_state', () =>
        rest.engineStates().map(({ lane, state }) => [labels({ lane, state }), 1]),
      )
      metrics.reading('weir_engine_memory_bytes', () =>
        rest.engineStates().map(({ lane, bytes }) => [labels({ lane }), bytes]),
      )
    },
    settled(row, traceId) {
      settlement(row, traceId)
      genAi(row, traceId)
    },
    cacheUsed(row, prompt, placement) {
      const cause = cacheUse.add(row, prompt, placement)
      if (cause) misses.add(labels({ model: row.model, lane: row.lane, cause }))
    },
    cacheUse,
    pastLimit({ requestId, model, lane, maxTokens }) {
      breaches.add(labels({ model }))
      const line = { request_id: requestId, model, lane, max_tokens: maxTokens }
      log.warn(line, 'engine went past the limits of a request; the answer and its bill were cut')
    },
    contradicted(job, count) {
      const { model, deployment } = job
      contradictions.add(labels({ model: model.id }))
      if (!doubtful.add(job, count)) return
      const { engine, lane } = deployment
      const { least, most } = job.expectedInput ?? {}
      const line = { model: model.id, lane, kind: engine?.kind, urls: engine?.urls, counted: count, least, most }
      log.warn(
        line,
        'the token counts of an engine contradict the text, and are billed; if it does not count tokens, set usage: estimated for it',
      )
    },
    contradictedCounts: doubtful.list,
    rowsSetAside: (count) => void (setAside += count),
    certificateServed: (validUntil) => void (certificateEnd = validUntil.getTime() / 1000),
    reconciled: (problems, at) => void (reconciliation = { problems, at }),
    alertSent: (endpoint, result) => alerts.add(labels({ endpoint, result })),
    alertsWaited: (ms) => void (alertsWaitMs = ms),
    engineStarted: (lane, ms) => engineStarts.observe(labels({ lane }), ms / 1000),
    engineFailed: (lane) => engineFailures.add(labels({ lane })),
    spendLimitReached: (workspace) => spendLimits.add(labels({ workspace })),
    async metrics() {
      await readParts()
      return metrics.read()
    },
    async close() {
      delay.disable()
      await lines.flush()
    },
  }
}

function settlementMetrics(metrics: Metrics): Telemetry['settled'] {
  const outcomes = metrics.counter('weir_outcomes_total')
  const tokens = metrics.counter('weir_tokens_total')
  const queueWait = metrics.histogram('weir_queue_wait_seconds', SECONDS)
  const firstToken = metrics.histogram('weir_first_token_seconds', SECONDS)
  const duration = metrics.histogram('weir_engine_seconds', SECONDS)
  const labelsOf = memo((model: string) =>
    memo((lane: string) => ({
      place: labels({ model, lane }),
      input: labels({ model, lane, kind: 'input' }),
      cachedInput: labels({ model, lane, kind: 'cached_input' }),
      output: labels({ model, lane, kind: 'output' }),
      outcome: memo((outcome: string) => labels({ model, lane, outcome })),
    })),
  )
  return (row, traceId) => {
    const known = labelsOf(row.model)(row.lane)
    outcomes.add(known.outcome(row.outcome))
    tokens.add(known.input, row.inputTokens)
    tokens.add(known.cachedInput, row.cachedInputTokens)
    tokens.add(known.output, row.outputTokens)
    queueWait.observe(known.place, row.queueWaitMs / 1000, traceId)
    if (row.firstTokenMs !== null) firstToken.observe(known.place, row.firstTokenMs / 1000, traceId)
    duration.observe(known.place, row.durationMs / 1000, traceId)
  }
}

function* cacheTokens(cacheUse: CacheUse): Iterable<readonly [string, number]> {
  for (const { workspaceId, keyId, model, inputTokens, cachedInputTokens } of cacheUse.entries(undefined)) {
    const place = { workspace: workspaceId, key: keyId, model }
    yield [labels({ ...place, kind: 'input' }), inputTokens]
    yield [labels({ ...place, kind: 'cached_input' }), cachedInputTokens]
  }
}

function laneGauges(metrics: Metrics, lanes: () => ReadonlyMap<string, LaneStatus>): void {
  const gauge = (name: MetricOf<'gauge'>, read: (lane: LaneStatus) => number): void =>
    metrics.reading(name, () => [...lanes()].map(([lane, status]) => [labels({ lane }), read(status)]))
  gauge('weir_in_flight_requests', (lane) => lane.inFlightRequests)
  gauge('weir_committed_tokens', (lane) => lane.committedTokens)
  gauge('weir_queue_depth', (lane) => lane.queueDepth)
  gauge('weir_batch_in_flight_requests', ({ batch }) => batch.inFlightRequests)
  gauge('weir_batch_committed_tokens', ({ batch }) => batch.committedTokens)
  gauge('weir_batch_queue_depth', ({ batch }) => batch.queueDepth)
  gauge('weir_lane_max_concurrent_requests', ({ limits }) => limits.maxConcurrentRequests)
  gauge('weir_lane_token_budget', ({ limits }) => limits.tokenBudget)
  gauge('weir_lane_max_queue_depth', ({ limits }) => limits.maxQueueDepth)
  gauge('weir_lane_max_wait_seconds', ({ limits }) => limits.maxWaitMs / 1000)
}

function engineGauges(
  metrics: Metrics,
  addresses: () => Iterable<readonly [lane: string, address: EngineAddressState]>,
): void {
  const gauge = (name: MetricOf<'gauge'>, read: (address: EngineAddressState) => number | undefined): void =>
    metrics.reading(name, () =>
      [...addresses()].flatMap(([lane, address]) => {
        const value = read(address)
        return value === undefined ? [] : [[labels({ lane, address: address.url }), value]]
      }),
    )
  gauge('weir_engine_up', ({ isUp }) => (isUp ? 1 : 0))
  gauge('weir_engine_reported_running', ({ load }) => load?.running)
  gauge('weir_engine_reported_waiting', ({ load }) => load?.waiting)
  gauge('weir_engine_reported_cache_use', ({ load }) => load?.cacheUse)
}

function replicaGauges(metrics: Metrics, admission: Admission, coordination: Coordination): void {
  const gauge = (name: MetricOf<'gauge'>, read: (lane: LaneStatus) => number): void =>
    metrics.reading(name, () => [...admission.ownStatus()].map(([lane, own]) => [labels({ lane }), read(own)]))
  gauge('weir_replica_in_flight_requests', (lane) => lane.inFlightRequests)
  gauge('weir_replica_queue_depth', (lane) => lane.queueDepth)
  metrics.reading('weir_coordinated', () => [['', ['alone', 'joined'].includes(coordination.state()) ? 1 : 0]])
  metrics.reading('weir_replicas', () => [['', coordination.replicas()]])
}

function ledgerGauges(metrics: Metrics, ledger: Ledger): void {
  metrics.reading('weir_ledger_lag_seconds', () => [['', ledger.status().lagMs / 1000]])
  metrics.reading('weir_journal_bytes', () => [['', ledger.status().journalBytes]])
  metrics.reading('weir_journal_lag_seconds', () => [['', ledger.status().journalLagMs / 1000]])
  metrics.reading('weir_ledger_healthy', () => [['', ledger.status().healthy ? 1 : 0]])
}

function processGauges(metrics: Metrics): ReturnType<typeof monitorEventLoopDelay> {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  metrics.reading('weir_event_loop_delay_seconds', () => {
    const seconds = delay.percentile(99) / 1e9
    delay.reset()
    return [['', seconds]]
  })
  metrics.reading('process_resident_memory_bytes', () => [['', process.memoryUsage.rss()]])
  metrics.reading('process_cpu_seconds_total', () => {
    const { user, system } = process.cpuUsage()
    return [['', (user + system) / 1e6]]
  })
  return delay
}

/** Writes log lines to a file descriptor in batches. */
export interface LogDestination {
  write(line: string): void
  /** Resolves when every line so far has been written to the descriptor. */
  flush(): Promise<void>
}

const BATCH_CHARACTERS = 16_000
const BATCH_MS = 250
/** Further lines are dropped, so that a stalled reader cannot exhaust the memory of the service. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024

/**
 * pino's own destination measures and joins its whole buffer for every line, so it gets whole batches instead. It still
 * handles descriptors that are not ready and partial writes.
 */
export function logDestination(descriptor: number): LogDestination {
  // Without a minLength, `flush` would not wait.
  const destination = pino.destination({ dest: descriptor, sync: false, minLength: 1, maxLength: MAX_BUFFERED_BYTES })
  let lines: string[] = []
  let characters = 0
  let timer: NodeJS.Timeout | undefined

  function writeBatch(): void {
    clearTimeout(timer)
    timer = undefined
    if (lines.length === 0) return
    process.off('exit', writeAtExit)
    const batch = lines.join('')
    lines = []
    characters = 0
    destination.write(batch)
  }

  function writeAtExit(): void {
    writeBatch()
    destination.flushSync()
  }

  return {
    write(line) {
      if (lines.length === 0) process.once('exit', writeAtExit)
      lines.push(line)
      characters += line.length
      if (characters >= BATCH_CHARACTERS) writeBatch()
      else timer ??= setTimeout(writeBatch, BATCH_MS)
    },
    flush() {
      writeBatch()
      return new Promise((resolve) => destination.flush(() => resolve()))
    },
  }
}

/**
 * The line in the format that pino writes. Every request has one, so it is concatenated from its fields: building an
 * object and stringifying it takes twice as long.
 */
export function requestText(line: RequestLine, notes: RequestNotes, now: number): string {
  return `{"level":30,"time":"${isoTime(now)}"${fieldsOf(line)}${fieldsOf(notes)},"msg":"request"}\n`
}

function fieldsOf(object: RequestLine | RequestNotes): string {
  let text = ''
  for (const name in object) {
    const value = object[name]
    if (value !== undefined) text += `,"${name}":${typeof value === 'number' ? value : JSON.stringify(value)}`
  }
  return text
}

let second = Number.NaN
let startOfSecond = ''

/** Equal to `Date.toISOString`. Only the milliseconds differ from line to line. */
function isoTime(now: number): string {
  const current = Math.floor(now / 1000)
  if (current !== second) {
    second = current
    startOfSecond = new Date(now).toISOString().slice(0, -4)
  }
  return `${startOfSecond}${String(now % 1000).padStart(3, '0')}Z`
}
