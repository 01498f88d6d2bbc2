import { metricTable, type MetricName, type MetricOf } from './metric-table.ts'

/**
 * Metrics in the Prometheus text format. Counting is only a map lookup and an addition, because every request does it
 * several times; the text is built when it is scraped.
 */
export interface Metrics {
  counter(name: MetricOf<'counter'>): Counter
  histogram(name: MetricOf<'histogram'>, buckets: readonly number[]): Histogram
  /** A value that something else keeps. `read` is called on every scrape and returns pairs of labels and value. */
  reading(name: MetricOf<'gauge' | 'counter'>, read: () => Iterable<readonly [label: string, value: number]>): void
  text(): string
}

/** `label` is the text that `labels` returns, or ''. */
interface Counter {
  add(label: string, amount?: number): void
}

interface Histogram {
  observe(label: string, value: number): void
}

/** Formats labels as `{model="a",kind="b"}`. Callers on hot paths should keep the result. */
export function labels(pairs: Readonly<Record<string, string | number>>): string {
  const parts = Object.entries(pairs).map(([name, value]) => `${name}="${escape(String(value))}"`)
  return parts.length === 0 ? '' : `{${parts.join(',')}}`
}

/** Caches formatted labels, which are few and used constantly: the catalog and the error table bound their number. */
export function memo<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const cache = new Map<Key, Value>()
  return (key) => {
    let value = cache.get(key)
    if (value === undefined) cache.set(key, (value = make(key)))
    return value
  }
}

interface Distribution {
  readonly counts: number[]
  sum: number
  count: number
}

export function createMetrics(): Metrics {
  const blocks: (() => string)[] = []
  const head = (name: MetricName): string => {
    const { help, type } = metricTable[name]
    return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
  }

  return {
    counter(name) {
      const values = new Map<string, number>()
      blocks.push(() => head(name) + lines(name, values))
      return { add: (label, amount = 1) => void values.set(label, (values.get(label) ?? 0) + amount) }
    },
    histogram(name, buckets) {
      const values = new Map<string, Distribution>()
      blocks.push(() => head(name) + [...values].map((entry) => distribution(name, buckets, entry)).join(''))
      return {
        observe(label, value) {
          let series = values.get(label)
          if (!series) values.set(label, (series = { counts: buckets.map(() => 0), sum: 0, count: 0 }))
          const bucket = buckets.findIndex((limit) => value <= limit)
          if (bucket >= 0) series.counts[bucket] = (series.counts[bucket] ?? 0) + 1
          series.sum += value
          series.count++
        },
      }
    },
    reading(name, read) {
      blocks.push(() => head(name) + lines(name, read()))
    },
    text: () => blocks.map((block) => block()).join(''),
  }
}

function lines(name: string, values: Iterable<readonly [string, number]>): string {
  let text = ''
  for (const [label, value] of values) text += `${name}${label} ${value}\n`
  return text
}

function distribution(
  name: string,
  buckets: readonly number[],
  [label, series]: readonly [string, Distribution],
): string {
  const inner = label === '' ? '' : `${label.slice(1, -1)},`
  let text = ''
  let cumulative = 0
  for (const [index, limit] of buckets.entries()) {
    cumulative += series.counts[index] ?? 0
    text += `${name}_bucket{${inner}le="${limit}"} ${cumulative}\n`
  }
  text += `${name}_bucket{${inner}le="+Inf"} ${series.count}\n`
  return `${text}${name}_sum${label} ${series.sum}\n${name}_count${label} ${series.count}\n`
}

function escape(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
