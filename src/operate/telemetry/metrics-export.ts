import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api'
import { millisToHrTime } from '@opentelemetry/core'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import {
  AggregationTemporality,
  DataPointType,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import type { Config } from '../../config.ts'
import { metricTable, type MetricName } from './metric-table.ts'
import type { MetricFamily } from './metrics.ts'
import { reportFailures, resourceOf } from './open-telemetry.ts'

/** Sends the metrics to a collector by OTLP: the same values as /metrics. Loaded only where a collector is configured. */
export interface MetricsExport {
  /** Sends the last values. */
  close(): Promise<void>
}

export interface MetricsExportParts {
  readonly version: string
  /** The name of this process. */
  readonly instance: string
  read(): Promise<readonly MetricFamily[]>
  /** Metrics could not be sent. */
  failed(reason: string): void
}

/** How long a stop waits for a collector that does not answer. */
const CLOSE_MS = 2000

export function openMetricsExport(
  { url, intervalMs }: NonNullable<Config['metricsExport']>,
  parts: MetricsExportParts,
): MetricsExport {
  reportFailures(parts.failed)
  const resource = resourceOf(parts)
  const scope = { name: 'weir', version: parts.version }
  const startTime = millisToHrTime(Date.now())
  const producer = {
    async collect() {
      const families = await parts.read()
      const endTime = millisToHrTime(Date.now())
      const metrics = families.map((family) => metricData(family, { startTime, endTime }))
      return { resourceMetrics: { resource, scopeMetrics: [{ scope, metrics }] }, errors: [] }
    },
  }
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url }),
    exportIntervalMillis: intervalMs,
    metricProducers: [producer],
  })
  const provider = new MeterProvider({ resource, readers: [reader] })
  return {
    async close() {
      await Promise.race([provider.shutdown(), new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref())])
    },
  }
}

/** The names of the conventions, which Prometheus writes with underscores and units. */
const conventionNames: Readonly<Record<Extract<MetricName, `gen_ai_${string}`>, string>> = {
  gen_ai_server_request_duration_seconds: 'gen_ai.server.request.duration',
  gen_ai_server_time_to_first_token_seconds: 'gen_ai.server.time_to_first_token',
  gen_ai_server_time_per_output_token_seconds: 'gen_ai.server.time_per_output_token',
  gen_ai_client_inference_usage_input_tokens_total: 'gen_ai.client.inference.usage.input_tokens',
  gen_ai_client_inference_usage_cache_read_input_tokens_total: 'gen_ai.client.inference.usage.cache_read.input_tokens',
  gen_ai_client_inference_usage_output_tokens_total: 'gen_ai.client.inference.usage.output_tokens',
  gen_ai_client_inference_operation_input_tokens: 'gen_ai.client.inference.operation.input_tokens',
  gen_ai_client_inference_operation_output_tokens: 'gen_ai.client.inference.operation.output_tokens',
  gen_ai_client_token_usage: 'gen_ai.client.token.usage',
}

const conventionLabels: Readonly<Record<string, string>> = {
  gen_ai_operation_name: 'gen_ai.operation.name',
  gen_ai_request_model: 'gen_ai.request.model',
  gen_ai_provider_name: 'gen_ai.provider.name',
  gen_ai_token_type: 'gen_ai.token.type',
  gen_ai_token_modality: 'gen_ai.token.modality',
  error_type: 'error.type',
}

interface Period {
  readonly startTime: HrTime
  readonly endTime: HrTime
}

function metricData({ name, samples }: MetricFamily, period: Period): MetricData {
  const { type, help } = metricTable[name]
  const descriptor = {
    name: name in conventionNames ? conventionNames[name as keyof typeof conventionNames] : name,
    description: help,
    unit: unitOf(name),
    valueType: ValueType.DOUBLE,
  }
  const shared = { descriptor, aggregationTemporality: AggregationTemporality.CUMULATIVE }
  const numbers = samples.flatMap(({ label, value }) =>
    typeof value === 'number' ? [{ ...period, attributes: attributesOf(label), value }] : [],
  )
  if (type === 'counter') return { ...shared, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: numbers }
  if (type === 'gauge') return { ...shared, dataPointType: DataPointType.GAUGE, dataPoints: numbers }
  const dataPoints = samples.flatMap(({ label, value }) => {
    if (typeof value === 'number') return []
    const { buckets, counts, sum } = value
    const count = counts.reduce((total, it) => total + it, 0)
    const histogram = { buckets: { boundaries: [...buckets], counts: [...counts] }, sum, count }
    return [{ ...period, attributes: attributesOf(label), value: histogram }]
  })
  return { ...shared, dataPointType: DataPointType.HISTOGRAM, dataPoints }
}

function unitOf(name: MetricName): string {
  if (name.includes('_seconds')) return 's'
  if (name.includes('_bytes')) return 'By'
  return name.includes('token') ? '{token}' : ''
}

/** Reads what `labels` has written. An empty label is a missing one. */
function attributesOf(label: string): Attributes {
  const pairs = [...label.matchAll(/(?<!\w)(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = '', value = '']) => [
    conventionLabels[name] ?? name,
    value.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped)),
  ])
  return Object.fromEntries(pairs.filter(([, value]) => value !== '')) as Attributes
}
