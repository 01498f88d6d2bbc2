/**
 * Figures in the Prometheus text format. Counting is a map look-up and an addition, because every request
 * does it several times; the text is made when somebody asks.
 */
export interface Counter {
  add(label: string, amount?: number): void
}

export interface Histogram {
  observe(label: string, value: number): void
}

export interface Metrics {
  /** One label, or several in one string: see `labels`. */
  counter(name: string, help: string): Counter
  histogram(name: string, help: string, buckets: readonly number[]): Histogram
  /** Read when somebody asks: label → value. */
  gauge(name: string, help: string, read: () => Iterable<readonly [label: string, value: number]>): void
  text(): string
}

/** `{model="a",kind="b"}`; made once and kept, where it is used often. */
export function labels(pairs: Readonly<Record<string, string | number>>): string {
  const parts = Object.entries(pairs).map(([name, value]) => `${name}="${escape(String(value))}"`)
  return parts.length === 0 ? '' : `{${parts.join(',')}}`
}

interface Distribution {
  readonly counts: number[]
  sum: number
  count: number
}

export function createMetrics(): Metrics {
  const blocks: (() => string)[] = []
  const head = (name: string, help: string, type: string): string => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`

  return {
    counter(name, help) {
      const values = new Map<string, number>()
      blocks.push(() => head(name, help, 'counter') + lines(name, values))
      return { add: (label, amount = 1) => void values.set(label, (values.get(label) ?? 0) + amount) }
    },
    histogram(name, help, buckets) {
      const values = new Map<string, Distribution>()
      blocks.push(
        () => head(name, help, 'histogram') + [...values].map((entry) => distribution(name, buckets, entry)).join(''),
      )
      return {
        observe(label, value) {
          let held = values.get(label)
          if (!held) values.set(label, (held = { counts: buckets.map(() => 0), sum: 0, count: 0 }))
          const bucket = buckets.findIndex((limit) => value <= limit)
          if (bucket >= 0) held.counts[bucket] = (held.counts[bucket] ?? 0) + 1
          held.sum += value
          held.count++
        },
      }
    },
    gauge(name, help, read) {
      blocks.push(() => head(name, help, 'gauge') + lines(name, read()))
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
  [label, held]: readonly [string, Distribution],
): string {
  const inner = label === '' ? '' : `${label.slice(1, -1)},`
  let text = ''
  let below = 0
  for (const [index, limit] of buckets.entries()) {
    below += held.counts[index] ?? 0
    text += `${name}_bucket{${inner}le="${limit}"} ${below}\n`
  }
  text += `${name}_bucket{${inner}le="+Inf"} ${held.count}\n`
  return `${text}${name}_sum${label} ${held.sum}\n${name}_count${label} ${held.count}\n`
}

function escape(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
