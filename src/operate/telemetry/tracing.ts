import {
  type Attributes,
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { RequestRow } from '../../ledger/rows.ts'
import type { Exchange } from '../../server/exchange.ts'
import { BASE } from '../../server/key-route.ts'
import type { EngineCallTrace, RequestTrace } from '../../shared/request-trace.ts'
import type { Config } from '../../config.ts'
import { operations } from './gen-ai-metrics.ts'
import { reportFailures, resourceOf } from './open-telemetry.ts'

/**
 * Traces of requests, sent to a collector by OTLP: a server span for each request, and below it one for the wait in the
 * queue, one for each engine call, and one for the settlement. The names follow OpenTelemetry's conventions for generative
 * AI. Spans never contain a prompt, an answer or a key. Loaded only where a collector is configured.
 */
export interface Tracing {
  /** Decides whether the request is recorded. `route` is the path of its route. */
  begin(exchange: Exchange, route: string): void
  /** Returns the id of its trace, if the request is recorded. */
  settled(row: RequestRow): string | undefined
  over(exchange: Exchange): void
  /** Sends what is left. */
  close(): Promise<void>
}

export interface TracingParts {
  readonly version: string
  /** The name of this process. */
  readonly instance: string
  /** The kind of engine behind a lane. */
  engineKind(lane: string): string | undefined
  /** Spans could not be sent. */
  failed(reason: string): void
}

type TracingSettings = NonNullable<Config['tracing']>

/** How long a stop waits for a collector that does not answer. */
const CLOSE_MS = 2000

/** A request that is recorded. */
interface Recorded {
  readonly span: Span
  readonly context: Context
  readonly startedAt: number
  /** undefined: the route is not an inference endpoint. */
  readonly operation: string | undefined
  row: RequestRow | undefined
}

const propagator = new W3CTraceContextPropagator()

export function openTracing(
  settings: TracingSettings,
  parts: TracingParts,
  exporter: SpanExporter = new OTLPTraceExporter({ url: settings.url }),
): Tracing {
  reportFailures(parts.failed)
  const provider = new TracerProvider({
    resource: resourceOf(parts),
    sampler: samplerOf(settings),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  })
  const tracer = provider.getTracer('weir', parts.version)
  const recorded = new Map<string, Recorded>()

  return {
    begin(exchange, route) {
      const parent = propagator.extract(ROOT_CONTEXT, exchange.request.headers, defaultTextMapGetter)
      const span = tracer.startSpan(`${exchange.method} ${route}`, { kind: SpanKind.SERVER }, parent)
      const context = trace.setSpan(parent, span)
      if (!span.isRecording()) {
        // Nothing is recorded, and the engine learns that.
        exchange.trace = {
          requestId: exchange.requestId,
          engineCall: () => ({ lines: engineLines(context), ended() {}, failed() {} }),
        }
        return
      }
      const operation = operations[route.slice(BASE.length)]
      span.setAttributes({
        'http.request.method': exchange.method,
        'http.route': route,
        'weir.request.id': exchange.requestId,
        ...(operation && { 'gen_ai.operation.name': operation }),
      })
      recorded.set(exchange.requestId, { span, context, startedAt: Date.now(), operation, row: undefined })
      exchange.trace = callsOf(tracer, exchange, context, operation ?? route)
    },
    settled(row) {
      const request = recorded.get(row.requestId)
      if (!request) return undefined
      request.row = row
      return request.span.spanContext().traceId
    },
    over(exchange) {
      const request = recorded.get(exchange.requestId)
      if (!request) return
      recorded.delete(exchange.requestId)
      finish(tracer, request, exchange, parts)
    },
    async close() {
      await Promise.race([provider.shutdown(), new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref())])
    },
  }
}

/** Records each attempt to call an engine, whose own span becomes a child of it. */
function callsOf(tracer: Tracer, exchange: Exchange, parent: Context, operation: string): RequestTrace {
  return {
    requestId: exchange.requestId,
    engineCall(url): EngineCallTrace {
      const span = tracer.startSpan(
        nameOf(operation, exchange),
        {
          kind: SpanKind.CLIENT,
          attributes: {
            'gen_ai.operation.name': operation,
            ...modelOf(exchange),
            ...serverOf(url),
          },
        },
        parent,
      )
      return {
        lines: engineLines(trace.setSpan(parent, span)),
        ended(status) {
          span.setAttribute('http.response.status_code', status)
          if (status >= 400) fail(span, String(status))
          span.end()
        },
        failed(cause) {
          // A call that this side has ended is no error of the engine.
          if (cause.name !== 'AbortError') fail(span, cause.name)
          span.end()
        },
      }
    },
  }
}

function finish(tracer: Tracer, request: Recorded, exchange: Exchange, parts: TracingParts): void {
  const { span, context, startedAt, operation, row } = request
  const { refusal, status, caller } = exchange
  const now = Date.now()
  const errorCode = row?.errorCode ?? refusal?.code
  if (operation !== undefined) span.updateName(nameOf(operation, exchange))
  span.setAttributes({
    'http.response.status_code': status,
    ...modelOf(exchange),
    ...(caller && { 'weir.workspace': caller.workspace.name }),
    ...(row && usageOf(row, parts)),
  })
  if (errorCode) fail(span, errorCode, status)
  if (row) {
    const { startedAt: admittedAt, settledAt, queueWaitMs, firstTokenMs } = row
    const attributes = { 'weir.lane': row.lane }
    tracer
      .startSpan('queue wait', { startTime: Math.max(startedAt, admittedAt - queueWaitMs), attributes }, context)
      .end(Math.max(startedAt, admittedAt))
    if (firstTokenMs !== null) span.addEvent('first token', admittedAt + firstTokenMs)
    tracer
      .startSpan('settlement', { startTime: settledAt, attributes: { 'weir.outcome': row.outcome } }, context)
      .end(now)
  }
  span.end()
}

/** A model that the service runs itself has no address, and a unix socket no port. */
function serverOf(url: string): Attributes {
  const { hostname = '', port = '' } = URL.parse(url) ?? {}
  return {
    'server.address': hostname || url,
    ...(port !== '' && { 'server.port': Number(port) }),
  }
}

/** Sets the error. The caller's own mistakes (status 4xx) do not mark a server span as failed, as the conventions have it. */
function fail(span: Span, type: string, status = 500): void {
  span.setAttribute('error.type', type)
  if (status < 400 || status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
}

function usageOf(row: RequestRow, { engineKind }: TracingParts): Attributes {
  return {
    'gen_ai.provider.name': engineKind(row.lane) ?? 'weir',
    'gen_ai.response.model': row.model,
    'gen_ai.response.id': row.requestId,
    ...(row.maxTokens > 0 && { 'gen_ai.request.max_tokens': row.maxTokens }),
    'gen_ai.usage.input_tokens': row.inputTokens,
    'gen_ai.usage.output_tokens': row.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': row.cachedInputTokens,
    'weir.lane': row.lane,
    'weir.outcome': row.outcome,
  }
}

function nameOf(operation: string, { notes: { model } }: Exchange): string {
  return typeof model === 'string' ? `${operation} ${model}` : operation
}

function modelOf({ notes: { model } }: Exchange): Attributes {
  return typeof model === 'string' ? { 'gen_ai.request.model': model } : {}
}

function engineLines(context: Context): string {
  const headers: Record<string, string> = {}
  propagator.inject(context, headers, defaultTextMapSetter)
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
}

/** By OTEL_TRACES_SAMPLER, or our own setting. */
function samplerOf({ sampler, share }: TracingSettings): Sampler {
  const root = {
    always_on: new AlwaysOnSampler(),
    always_off: new AlwaysOffSampler(),
    traceidratio: new TraceIdRatioBasedSampler(share),
  }
  const [name, followsCaller] = sampler.startsWith('parentbased_') ? [sampler.slice(12), true] : [sampler, false]
  const own = root[name as keyof typeof root]
  return followsCaller ? new ParentBasedSampler({ root: own }) : own
}
