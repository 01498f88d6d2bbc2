import { metricTable, type MetricName } from './metric-table.ts'
import type { Distribution, Exemplar, MetricFamily } from './metrics.ts'

/** The text format of Prometheus, or that of OpenMetrics, which has exemplars. */
export type MetricsFormat = 'prometheus' | 'openmetrics'

export const metricsTypes = {
  prometheus: 'text/plain; version=0.0.4',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const satisfies Record<MetricsFormat, string>

export function metricsText(families: readonly MetricFamily[], format: MetricsFormat): string {
  const text = families.map((family) => familyText(family, format)).join('')
  return format === 'openmetrics' ? `${text}# EOF\n` : text
}

/**
 * OpenMetrics where the Accept header of a scraper names it, and does not prefer plain text. A scraper that accepts
 * neither gets plain text, as it does from other exporters.
 */
export function metricsFormat(accept: string): MetricsFormat {
  const ranges = accept.split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const { version, q = '1' } = Object.fromEntries(parameters.map((it) => it.split('=', 2))) as Record<string, string>
    return { type, version: version?.replaceAll('"', ''), quality: Number(q) }
  })
  const qualityOf = (type: string, version: string): number | undefined =>
    ranges.find((it) => it.type === type && (it.version ?? version) === version)?.quality
  const open = qualityOf('application/openmetrics-text', '1.0.0') ?? 0
  const plain = qualityOf('text/plain', '0.0.4') ?? qualityOf('text/*', '') ?? qualityOf('*/*', '') ?? 0
  return open > 0 && open >= plain ? 'openmetrics' : 'prometheus'
}

function familyText({ name, samples }: MetricFamily, format: MetricsFormat): string {
  let text = head(name, format)
  for (const { label, value } of samples) {
    text += typeof value === 'number' ? `${name}${label} ${value}\n` : distribution(name, label, value, format)
  }
  return text
}

/** In OpenMetrics, the name of a counter has no suffix; those of its samples have. */
function head(name: MetricName, format: MetricsFormat): string {
  const { help, type } = metricTable[name]
  const family = format === 'openmetrics' && type === 'counter' ? name.slice(0, -'_total'.length) : name
  return `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n`
}

function distribution(
  name: string,
  label: string,
  { buckets, counts, sum, exemplars }: Distribution,
  format: MetricsFormat,
): string {
  const inner = label === '' ? '' : `${label.slice(1, -1)},`
  let text = ''
  let cumulative = 0
  for (const [index, count] of counts.entries()) {
    cumulative += count
    const exemplar = format === 'openmetrics' ? exemplarText(exemplars[index]) : ''
    text += `${name}_bucket{${inner}le="${limitText(buckets[index], format)}"} ${cumulative}${exemplar}\n`
  }
  return `${text}${name}_sum${label} ${sum}\n${name}_count${label} ${cumulative}\n`
}

function exemplarText(exemplar: Exemplar | undefined): string {
  return exemplar ? ` # {trace_id="${exemplar.traceId}"} ${exemplar.value} ${exemplar.at / 1000}` : ''
}

/** OpenMetrics has one form for each number: 5.0, and 1e+06 from a million. */
function limitText(limit: number | undefined, format: MetricsFormat): string {
  if (limit === undefined) return '+Inf'
  if (format === 'prometheus') return String(limit)
  if (limit < 1e6) return Number.isInteger(limit) ? `${limit}.0` : String(limit)
  const [digits, power = ''] = limit.toExponential().split('e+')
  return `${digits}e+${power.padStart(2, '0')}`
}
