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

type Section = { readonly endpoint?: string } | undefined

/** undefined: no traces. OpenTelemetry's variables win over the file; its exporter reads further ones, such as headers. */
export function tracingFrom(
  section: (Section & { readonly sample?: number }) | undefined,
  environment: NodeJS.ProcessEnv,
): TracingSettings | undefined {
  const url = addressOf('traces', section, environment)
  if (url === undefined) return undefined
  const [name, argument] = ['OTEL_TRACES_SAMPLER', 'OTEL_TRACES_SAMPLER_ARG'].map((it) => environment[it] || undefined)
  const sampler = SAMPLERS.find((it) => it === (name ?? 'parentbased_traceidratio'))
  if (!sampler) throw new ConfigError(`OTEL_TRACES_SAMPLER: must be one of ${SAMPLERS.join(', ')}, but is "${name}"`)
  const share = name === undefined ? (section?.sample ?? 1) : Number(argument ?? 1)
  if (share >= 0 && share <= 1) return { url, sampler, share }
  throw new ConfigError(`OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1, but is "${argument}"`)
}

/** undefined: metrics are only scraped. */
export function metricsExportFrom(section: Section, environment: NodeJS.ProcessEnv): MetricsExportSettings | undefined {
  const url = addressOf('metrics', section, environment)
  if (url === undefined) return undefined
  const interval = environment['OTEL_METRIC_EXPORT_INTERVAL'] || '60000'
  const intervalMs = Number(interval)
  if (Number.isInteger(intervalMs) && intervalMs > 0 && intervalMs < 2 ** 31) return { url, intervalMs }
  throw new ConfigError(`OTEL_METRIC_EXPORT_INTERVAL: must be a number of milliseconds, but is "${interval}"`)
}

const variables = {
  traces: { exporters: 'OTEL_TRACES_EXPORTER', address: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT' },
  metrics: { exporters: 'OTEL_METRICS_EXPORTER', address: 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT' },
}

/** Where one kind of data is sent; undefined: nowhere. As OpenTelemetry has it, an empty variable counts as missing. */
function addressOf(kind: keyof typeof variables, section: Section, environment: NodeJS.ProcessEnv): string | undefined {
  const { exporters, address } = variables[kind]
  const names = (environment[exporters] || 'otlp').split(',').map((name) => name.trim())
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || !names.includes('otlp')) return undefined
  const whole = environment['OTEL_EXPORTER_OTLP_ENDPOINT'] || section?.endpoint
  const url = environment[address] || (whole && `${whole.replace(/\/$/, '')}/v1/${kind}`)
  if (url === undefined || /^https?:$/.test(URL.parse(url)?.protocol ?? '')) return url
  const name = environment[address] ? address : 'OTEL_EXPORTER_OTLP_ENDPOINT'
  throw new ConfigError(`${name}: must be an address such as http://127.0.0.1:4318`)
}
