import type { MetricName, MetricOf } from './metric-table.ts'

/**
 * Counts what /metrics shows. Counting is only a map lookup and an addition, because every request does it several times;
 * everything else is done when the metrics are read.
 */
export interface Metrics {
  counter(name: MetricOf<'counter'>): Counter
  histogram(name: MetricOf<'histogram'>, buckets: readonly number[]): Histogram
  /** A value that something else keeps. `read` is called on every reading and returns pairs of labels and value. */
  reading(name: MetricOf<'gauge' | 'counter'>, read: () => Iterable<readonly [label: string, value: number]>): void
  read(): readonly MetricFamily[]
}

/** One metric with its values. Workers exchange it as JSON. */
export interface MetricFamily {
  readonly name: MetricName
  readonly samples: readonly MetricSample[]
}

export interface MetricSample {
  /** The text that `labels` returns, or ''. */
  readonly label: string
  readonly value: number | Distribution
}

/** What a histogram has counted. */
export interface Distribution {
  /** The upper limits of its buckets, which include them. */
  readonly buckets: readonly number[]
  /** One for each bucket, and a last one for values above all limits. */
  readonly counts: number[]
  sum: number
  /** By bucket: the newest value of a request that is traced. */
  readonly exemplars: Record<number, Exemplar>
}

export interface Exemplar {
  readonly traceId: string
  readonly value: number
  /** Unix time in milliseconds. */
  readonly at: number
}

/** `label` is the text that `labels` returns, or ''. */
interface Counter {
  add(label: string, amount?: number): void
}

interface Histogram {
  /** `traceId`: of a request that is traced. */
  observe(label: string, value: number, traceId?: string): void
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

export function createMetrics(): Metrics {
  const families = new Map<MetricName, () => Iterable<readonly [string, number | Distribution]>>()
  return {
    counter(name) {
      const values = new Map<string, number>()
      families.set(name, () => values)
      return { add: (label, amount = 1) => void values.set(label, (values.get(label) ?? 0) + amount) }
    },
    histogram(name, buckets) {
      const values = new Map<string, Distribution>()
      families.set(name, () => values)
      return {
        observe(label, value, traceId) {
          let series = values.get(label)
          if (!series) {
            series = { buckets, counts: Array.from({ length: buckets.length + 1 }, () => 0), sum: 0, exemplars: {} }
            values.set(label, series)
          }
          const found = buckets.findIndex((limit) => value <= limit)
          const bucket = found < 0 ? buckets.length : found
          series.counts[bucket]!++
          series.sum += value
          if (traceId !== undefined) series.exemplars[bucket] = { traceId, value, at: Date.now() }
        },
      }
    },
    reading(name, read) {
      families.set(name, read)
    },
    read: () =>
      [...families].map(([name, read]) => ({
        name,
        samples: Array.from(read(), ([label, value]) => ({ label, value })),
      })),
  }
}

function escape(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
