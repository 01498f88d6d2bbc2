import { monitorEventLoopDelay } from 'node:perf_hooks'
import { pino, type Logger } from 'pino'
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import type { LaneStatus } from './core/admission.ts'
import type { LedgerRow } from './core/ledger.ts'
import type { Admission, Ledger } from './ports.ts'

/** Logs and figures. Neither ever holds a prompt, an answer or a key. */
export interface Telemetry {
  readonly log: Logger
  requestOver(status: number, code: string | undefined): void
  settled(row: LedgerRow): void
  /** The Prometheus text of everything. */
  metrics(): Promise<string>
  close(): Promise<void>
}

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

export function createTelemetry(level: string, parts: { admission: Admission; ledger: Ledger }): Telemetry {
  const destination = pino.destination({ dest: 2, sync: false, minLength: 16_000, periodicFlush: 250 })
  const log = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 })

  const requests = new Counter({
    name: 'weir_requests_total',
    help: 'Responses by status',
    labelNames: ['status'],
    registers,
  })
  const rejections = new Counter({
    name: 'weir_rejections_total',
    help: 'Refusals by code',
    labelNames: ['code'],
    registers,
  })
  const outcomes = new Counter({
    name: 'weir_outcomes_total',
    help: 'Settled requests by outcome',
    labelNames: ['model', 'outcome'],
    registers,
  })
  const tokens = new Counter({
    name: 'weir_tokens_total',
    help: 'Tokens settled',
    labelNames: ['model', 'kind'],
    registers,
  })
  const queueWait = new Histogram({
    name: 'weir_queue_wait_seconds',
    help: 'Wait for admission',
    labelNames: ['model'],
    buckets: SECONDS,
    registers,
  })
  const firstToken = new Histogram({
    name: 'weir_first_token_seconds',
    help: 'From admission to the first token',
    labelNames: ['model'],
    buckets: SECONDS,
    registers,
  })
  const duration = new Histogram({
    name: 'weir_engine_seconds',
    help: 'From admission to settlement',
    labelNames: ['model'],
    buckets: SECONDS,
    registers,
  })
  laneGauges(registers, parts.admission)
  ledgerGauges(registers, parts.ledger)
  const delay = loopDelayGauge(registers)

  return {
    log,
    requestOver(status, code) {
      requests.inc({ status })
      if (code !== undefined) rejections.inc({ code })
    },
    settled(row) {
      const { model } = row
      outcomes.inc({ model, outcome: row.outcome })
      tokens.inc({ model, kind: 'input' }, row.inputTokens)
      tokens.inc({ model, kind: 'cached_input' }, row.cachedInputTokens)
      tokens.inc({ model, kind: 'output' }, row.outputTokens)
      queueWait.observe({ model }, row.queueWaitMs / 1000)
      if (row.firstTokenMs !== null) firstToken.observe({ model }, row.firstTokenMs / 1000)
      duration.observe({ model }, row.durationMs / 1000)
    },
    metrics: () => registry.metrics(),
    async close() {
      delay.disable()
      await new Promise<void>((resolve) => log.flush(() => resolve()))
    },
  }
}

/** Read when somebody asks, so that they cost nothing in between. */
function laneGauges(registers: Registry[], admission: Admission): void {
  const gauge = (name: string, help: string, read: (lane: LaneStatus) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['lane'],
      registers,
      collect() {
        this.reset()
        for (const [lane, status] of admission.status()) this.set({ lane }, read(status))
      },
    })
  gauge('weir_in_flight_requests', 'Admitted requests whose engine call has not ended', (lane) => lane.inFlightRequests)
  gauge('weir_committed_tokens', 'Tokens charged to the budget', (lane) => lane.committedTokens)
  gauge('weir_queue_depth', 'Requests waiting for admission', (lane) => lane.queueDepth)
}

function ledgerGauges(registers: Registry[], ledger: Ledger): void {
  new Gauge({
    name: 'weir_ledger_lag_seconds',
    help: 'Age of the oldest row that is not durable yet',
    registers,
    collect() {
      this.set(ledger.status().lagMs / 1000)
    },
  })
  new Gauge({
    name: 'weir_ledger_healthy',
    help: '1 while usage can be recorded',
    registers,
    collect() {
      this.set(ledger.status().healthy ? 1 : 0)
    },
  })
}

function loopDelayGauge(registers: Registry[]): ReturnType<typeof monitorEventLoopDelay> {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  new Gauge({
    name: 'weir_event_loop_delay_seconds',
    help: '99th percentile of the delay of the event loop since the last look',
    registers,
    collect() {
      this.set(delay.percentile(99) / 1e9)
      delay.reset()
    },
  })
  return delay
}
