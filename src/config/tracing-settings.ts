import { ConfigError } from '../shared/checked-yaml.ts'

/** Where metrics are sent, and how often. */
export interface MetricsExportSettings {
  /** Where they are posted. */
  readonly url: string
  readonly intervalMs: number
}

/** Where traces are sent, and of which requests. */
export interface TracingSettings {
  /** Where spans are posted. */
  readonly url: string
  readonly sampler: SamplerName
  /** The share of requests that a sampler with `ratio` in its name records. */
  readonly share: number
}

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

export type SamplerName = (typeof SAMPLERS)[number]

/** undefined: no traces. OpenTelemetry's variables win over the file; its exporter reads further ones, such as headers. */
export function tracingFrom(
  section: { readonly endpoint?: string; readonly sample?: number } | undefined,
  environment: NodeJS.ProcessEnv,
): TracingSettings | undefined {
  const isOff = environment['OTEL_SDK_DISABLED'] === 'true' || environment['OTEL_TRACES_EXPORTER'] === 'none'
  const endpoint = environment['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? section?.endpoint
  const url =
    environment['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] ?? (endpoint && `${endpoint.replace(/\/$/, '')}/v1/traces`)
  if (isOff || url === undefined) return undefined
  if (!URL.canParse(url))
    throw new ConfigError('OTEL_EXPORTER_OTLP_ENDPOINT: must be an address such as http://127.0.0.1:4318')
  const { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: argument } = environment
  const sampler = SAMPLERS.find((it) => it === (name ?? 'parentbased_traceidratio'))
  if (!sampler) throw new ConfigError(`OTEL_TRACES_SAMPLER: must be one of ${SAMPLERS.join(', ')}, but is "${name}"`)
  const share = name === undefined ? (section?.sample ?? 1) : Number(argument ?? 1)
  if (share >= 0 && share <= 1) return { url, sampler, share }
  throw new ConfigError(`OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1, but is "${argument}"`)
}

/** undefined: metrics are only scraped. Variables win over the file, as they do for traces. */
export function metricsExportFrom(
  section: { readonly endpoint?: string } | undefined,
  environment: NodeJS.ProcessEnv,
): MetricsExportSettings | undefined {
  const exporters = (environment['OTEL_METRICS_EXPORTER'] || 'otlp').split(',').map((name) => name.trim())
  const isOff = environment['OTEL_SDK_DISABLED'] === 'true' || !exporters.includes('otlp')
  const endpoint = environment['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? section?.endpoint
  const url =
    environment['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'] ?? (endpoint && `${endpoint.replace(/\/$/, '')}/v1/metrics`)
  if (isOff || url === undefined) return undefined
  if (!URL.canParse(url))
    throw new ConfigError('OTEL_EXPORTER_OTLP_ENDPOINT: must be an address such as http://127.0.0.1:4318')
  const interval = environment['OTEL_METRIC_EXPORT_INTERVAL'] || '60000'
  const intervalMs = Number(interval)
  if (Number.isInteger(intervalMs) && intervalMs > 0 && intervalMs < 2 ** 31) return { url, intervalMs }
  throw new ConfigError(`OTEL_METRIC_EXPORT_INTERVAL: must be a number of milliseconds, but is "${interval}"`)
}
