import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { date, exactTime, time } from './format.ts'
import { Table } from './parts.tsx'

/** Lines over time. Each chart has a sentence that summarizes it, and its numbers as a table. */

export interface Line {
  readonly title: string
  /** One for each time; null where nothing was measured. */
  readonly values: readonly (number | null)[]
}

export interface ChartProps {
  readonly title: string
  /** A summary of the chart in words. */
  readonly summary: string
  /** Unix ms. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  readonly unit: 'hour' | 'day' | 'second'
  readonly format: (value: number) => string
}

const HEIGHT = 180
/** Lines differ by their dashes as well as by their colours. */
const dashes: readonly (readonly number[])[] = [[], [6, 3], [2, 3], [10, 4, 2, 4], [1, 4], [12, 3], [4, 8]]

export function Chart({ title, summary, times, lines, unit, format }: ChartProps) {
  const [isTable, setTable] = useState(false)
  const at = (value: number): string =>
    unit === 'day' ? date(value) : unit === 'hour' ? time(value) : exactTime(value)
  return (
    <section class="panel stack tight" aria-label={title}>
      <div class="row apart">
        <h3>{title}</h3>
        <button type="button" class="plain" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {isTable ? 'Show chart' : 'Show numbers'}
        </button>
      </div>
      <p class="small soft">{summary}</p>
      {isTable ? (
        <Table
          caption={`${title}, in numbers`}
          rows={times.map((it, index) => ({ at: it, index }))}
          keyOf={(row) => String(row.at)}
          columns={[
            { title: 'Time in Sydney', cell: (row) => at(row.at) },
            ...lines.map((line) => ({
              title: line.title,
              isNumber: true,
              cell: (row: { index: number }) => cell(line.values[row.index], format),
            })),
          ]}
        />
      ) : (
        <Plot times={times} lines={lines} unit={unit} format={format} />
      )}
      {lines.length > 1 && !isTable ? <Legend lines={lines} /> : null}
    </section>
  )
}

const cell = (value: number | null | undefined, format: (value: number) => string): string =>
  value === null || value === undefined ? '–' : format(value)

function Legend({ lines }: { lines: readonly Line[] }) {
  return (
    <ul class="legend" aria-hidden="true">
      {lines.map(({ title }, index) => (
        <li key={title}>
          <svg width="26" height="8" viewBox="0 0 26 8">
            <line
              x1="0"
              y1="4"
              x2="26"
              y2="4"
              class={`line-${index}`}
              stroke-width="2"
              stroke-dasharray={dashes[index]?.join(' ')}
            />
          </svg>
          {title}
        </li>
      ))}
    </ul>
  )
}

function Plot({ times, lines, unit, format }: Omit<ChartProps, 'title' | 'summary'>) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const shape = `${lines.map(({ title }) => title).join()} ${unit}`

  useEffect(() => {
    const element = place.current
    if (!element) return
    const draw = (): void => {
      plot.current?.destroy()
      plot.current = new uPlot(optionsOf(element, lines, unit, format), dataOf(times, lines), element)
    }
    draw()
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', draw)
    return () => {
      resized.disconnect()
      scheme.removeEventListener('change', draw)
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [shape])

  useEffect(() => plot.current?.setData(dataOf(times, lines)), [times, lines])
  return <div ref={place} class="plot" aria-hidden="true" />
}

function dataOf(times: readonly number[], lines: readonly Line[]): uPlot.AlignedData {
  return [times.map((it) => it / 1000), ...lines.map(({ values }) => [...values])] as uPlot.AlignedData
}

function optionsOf(
  element: HTMLElement,
  lines: readonly Line[],
  unit: ChartProps['unit'],
  format: (value: number) => string,
): uPlot.Options {
  const style = getComputedStyle(element)
  const colour = (name: string): string => style.getPropertyValue(name).trim()
  // The canvas needs a resolved colour, not light-dark().
  const resolved = (name: string): string => {
    const probe = document.createElement('span')
    probe.style.color = `var(${name})`
    element.append(probe)
    const value = getComputedStyle(probe).color
    probe.remove()
    return value || colour(name)
  }
  const axis = {
    stroke: resolved('--soft'),
    grid: { stroke: resolved('--line'), width: 1 },
    ticks: { show: false, size: 0 },
    gap: 6,
    font: '12px system-ui, sans-serif',
  }
  return {
    width: element.clientWidth,
    height: HEIGHT,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Australia/Sydney'),
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: true }, y: { range: (_, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, size: 26, space: 80, values: (_, ticks) => ticks.map((it) => tickNames[unit].format(it * 1000)) },
      { ...axis, size: roomForLabels, incrs: stepsOf(format), values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...lines.map(({ title }, index) => ({
        label: title,
        stroke: resolved(`--line-${index}`),
        width: 2,
        dash: [...(dashes[index] ?? [])],
        spanGaps: false,
        points: { show: true, filter: alonePoints },
      })),
    ],
  }
}

/** A line through one point would be invisible, so a point without neighbours is drawn itself. */
function alonePoints(self: uPlot, series: number): number[] {
  const values = self.data[series] ?? []
  const isMissing = (index: number): boolean => (values[index] ?? null) === null
  return [...values.keys()].filter((index) => !isMissing(index) && isMissing(index - 1) && isMissing(index + 1))
}

const steps = Array.from({ length: 22 }, (_, index) => [1, 2, 5].map((it) => it * 10 ** (index - 9))).flat()

/** Steps that are too small for the format would repeat a label, such as half a request. */
const stepsOf = (format: (value: number) => string): number[] =>
  steps.filter((step) => format(step) !== format(0) && format(step) !== format(2 * step))

/** As wide as its widest label: small amounts have many digits. */
function roomForLabels(self: uPlot, labels: readonly string[] | null): number {
  self.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`
  const widths = (labels ?? []).map((label) => self.ctx.measureText(label).width / devicePixelRatio)
  return Math.ceil(Math.max(24, ...widths)) + 12
}

const tick = (parts: Intl.DateTimeFormatOptions): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-AU', { timeZone: 'Australia/Sydney', hourCycle: 'h23', ...parts })

/** The format of the times below a chart. */
const tickNames = {
  day: tick({ day: 'numeric', month: 'short' }),
  hour: tick({ weekday: 'short', hour: '2-digit', minute: '2-digit' }),
  second: tick({ hour: '2-digit', minute: '2-digit', second: '2-digit' }),
} as const
