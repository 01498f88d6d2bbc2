import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { exactTime } from './format.ts'
import type { Measure } from './measures.ts'

/** Draws a chart: stacked bars or lines, and the values under the pointer or, with the arrow keys, of one time. */

export interface Line {
  readonly title: string
  /** One for each time; null where nothing was measured. */
  readonly values: readonly (number | null)[]
  /** The name of a variable of tokens.css. Without it, the place among the lines decides. */
  readonly colour?: string
}

export type Unit = 'hour' | 'day' | 'second'

interface PlotProps {
  readonly title: string
  readonly times: readonly number[]
  /** Where each time ends. */
  readonly ends: readonly number[]
  readonly lines: readonly (Line & { readonly colour: string })[]
  readonly unit: Unit
  readonly measure: Measure
  readonly kind: 'bars' | 'lines'
  readonly noteOf?: (at: number) => string
  readonly zoomTo: (first: number, last: number) => void
  readonly zoomOut: () => void
}

const HEIGHT = 200
const BAR_WIDTH_MAX = 48
const LABEL_WIDTH = 76
/** With fewer values than this, each of them gets a point. */
const FEW = 13

const dashes: readonly (readonly number[])[] = [[], [6, 3], [2, 3], [10, 4, 2, 4]]

/** Lines differ by their dashes as well as by their colours. */
export function dashOf(colour: string): readonly number[] {
  const place = /\d+$/.exec(colour)?.[0]
  return dashes[Number(place ?? 0) % dashes.length] ?? []
}

/** What the pointer is at, and where that is in the plot. */
interface Pointed {
  readonly index: number
  readonly left: number
  readonly isRight: boolean
}

export function Plot(props: PlotProps) {
  const { title, times, lines, unit, kind } = props
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const newest = useRef(props)
  newest.current = props
  const [pointed, setPointed] = useState<Pointed>()
  const shape = JSON.stringify([lines.map((it) => [it.title, it.colour]), unit, kind])

  useEffect(() => {
    const element = place.current
    if (!element) return
    const draw = (): void => {
      plot.current?.destroy()
      plot.current = new uPlot(optionsOf(element, newest, setPointed), dataOf(newest.current), element)
    }
    draw()
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', draw)
    const chosen = new MutationObserver(draw)
    chosen.observe(document.documentElement, { attributeFilter: ['data-scheme'] })
    return () => {
      resized.disconnect()
      chosen.disconnect()
      scheme.removeEventListener('change', draw)
      plot.current?.destroy()
      plot.current = undefined
      setPointed(undefined)
    }
  }, [shape])

  useEffect(() => plot.current?.setData(dataOf(newest.current)), [times, lines])

  function point(index: number): void {
    const self = plot.current
    const at = self?.data[0][Math.max(0, Math.min(times.length - 1, index))]
    if (self && at !== undefined) self.setCursor({ left: self.valToPos(at, 'x'), top: 0 })
  }
  const steps: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }
  return (
    <div
      class="plot"
      role="group"
      aria-label={`${title}: the arrow keys show the values of each time`}
      tabIndex={0}
      onKeyDown={(event) => {
        const step = steps[event.key]
        if (event.key === 'Escape') plot.current?.setCursor({ left: -10, top: -10 })
        if (step === undefined) return
        event.preventDefault()
        point(pointed === undefined && step < 0 ? times.length - 1 : (pointed?.index ?? -1) + step)
      }}
      onBlur={() => plot.current?.setCursor({ left: -10, top: -10 })}
    >
      <div ref={place} class="canvas" aria-hidden="true" />
      <div role="status">{pointed && pointed.index < times.length ? <Readout {...props} at={pointed} /> : null}</div>
    </div>
  )
}

function Readout({
  times,
  ends,
  lines,
  unit,
  measure,
  kind,
  noteOf,
  at: { index, left, isRight },
}: PlotProps & { at: Pointed }) {
  const at = times[index] ?? 0
  const values = lines.flatMap(({ title, colour, values: of }) => {
    const value = of[index] ?? null
    return value === null || (kind === 'bars' && value === 0) ? [] : [{ title, colour, value }]
  })
  const note = noteOf?.(at) ?? ''
  return (
    <div class="readout" style={isRight ? { right: `calc(100% - ${left - 12}px)` } : { left: `${left + 12}px` }}>
      <strong>{timeText(at, ends[index] ?? at, unit)}</strong>
      {values.length === 0 ? <span class="soft">Nothing</span> : null}
      <dl>
        {values.map(({ title, colour, value }) => (
          <div key={title}>
            <dt>
              <span class="swatch" style={{ background: `var(${colour})` }} /> {title}
            </dt>
            <dd>{measure.exact(value)}</dd>
          </div>
        ))}
        {kind === 'bars' && values.length > 1 ? (
          <div class="total">
            <dt>Together</dt>
            <dd>{measure.exact(values.reduce((sum, { value }) => sum + value, 0))}</dd>
          </div>
        ) : null}
      </dl>
      {note === '' ? null : <span class="soft">{note}</span>}
    </div>
  )
}

function timeText(at: number, end: number, unit: Unit): string {
  if (unit === 'second') return exactTime(at)
  const soFar = at <= Date.now() && Date.now() < end ? ', so far' : ''
  return unit === 'day'
    ? `${readNames.day.format(at)}${soFar}`
    : `${readNames.day.format(at)}, ${readNames.hour.format(at)}–${readNames.hour.format(end)}${soFar}`
}

/** Where a value is drawn: in the middle of its hour or day. */
const middleOf = (at: number, end: number, unit: Unit): number => (unit === 'second' ? at : (at + end) / 2)

/** Bars are drawn from the highest sum to the lowest one, each over the one before it. */
function dataOf({ times, ends, lines, unit, kind }: PlotProps): uPlot.AlignedData {
  const at = times.map((it, index) => middleOf(it, ends[index] ?? it, unit) / 1000)
  if (kind === 'lines') return [at, ...lines.map(({ values }) => [...values])]
  const sums = times.map(() => 0)
  const stacked = lines.map(({ values }) =>
    values.map((value, index) => (sums[index] = (sums[index] ?? 0) + (value ?? 0))),
  )
  return [at, ...stacked.toReversed()]
}

function optionsOf(
  element: HTMLElement,
  newest: { readonly current: PlotProps },
  setPointed: (pointed: Pointed | undefined) => void,
): uPlot.Options {
  const { lines, unit, measure, kind } = newest.current
  const colour = (name: string): string => resolvedIn(element, name)
  const axis = {
    stroke: colour('--soft'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false, size: 0 },
    gap: 6,
    font: '12px system-ui, sans-serif',
  }
  const label = (self: uPlot, at: number): string => {
    const { times, ends } = newest.current
    const index = self.valToIdx(at)
    const spansDays = (ends.at(-1) ?? 0) - (times[0] ?? 0) > DAY_MS
    return tickNames[unit === 'hour' && spansDays ? 'dayHour' : unit].format(
      unit === 'second' ? at * 1000 : times[index],
    )
  }
  const bars = uPlot.paths.bars?.({ size: [0.8, BAR_WIDTH_MAX], radius: 0 })
  return {
    width: element.clientWidth,
    height: HEIGHT,
    // At the right, half the label of the last point.
    padding: [10, 28, 0, 0],
    legend: { show: false },
    cursor: {
      drag: { x: true, y: false, setScale: false, dist: 6 },
      points: { show: kind === 'lines', size: 7 },
      y: false,
      bind: { dblclick: () => () => (newest.current.zoomOut(), null) },
    },
    hooks: {
      setCursor: [
        (self) => {
          const { idx, left = -1 } = self.cursor
          if (idx === null || idx === undefined || left < 0) return setPointed(undefined)
          const inPlot = self.valToPos(self.data[0][idx] ?? 0, 'x')
          setPointed({ index: idx, left: self.over.offsetLeft + inPlot, isRight: inPlot > self.over.clientWidth / 2 })
        },
      ],
      setSelect: [
        (self) => {
          const { left, width } = self.select
          if (width === 0) return
          const [from, to] = [left, left + width].map((it) => self.posToVal(it, 'x') * 1000) as [number, number]
          const { times, ends, zoomTo } = newest.current
          const inside = times.flatMap((at, index) => {
            const middle = middleOf(at, ends[index] ?? at, unit)
            return middle >= from && middle <= to ? [index] : []
          })
          self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          if (inside.length > 0) zoomTo(inside[0] ?? 0, inside.at(-1) ?? 0)
        },
      ],
    },
    scales: {
      x: {
        time: true,
        range: () => {
          const { times, ends } = newest.current
          const end = unit === 'second' ? (times.at(-1) ?? 0) : (ends.at(-1) ?? 0)
          return [(times[0] ?? 0) / 1000, Math.max(end, (times[0] ?? 0) + 1) / 1000]
        },
      },
      y: {
        range: (_, _min, max) => {
          const { limit } = newest.current.measure
          return [0, max > 0 ? Math.min(max * 1.1, limit ?? Infinity) : (limit ?? 1)]
        },
      },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        splits: (self, _axis, from, to) => splitsOf(self, unit, from, to),
        values: (self, ticks) => ticks.map((it) => label(self, it)),
      },
      {
        ...axis,
        size: roomForLabels,
        space: 28,
        incrs: [...measure.steps],
        values: (self, ticks, _axis, _space, step) => ticks.map(measure.axis(self.scales['y']?.max ?? 0, step)),
      },
    ],
    series: [
      {},
      ...(kind === 'lines' ? lines : lines.toReversed()).map(({ title, colour: name }): uPlot.Series =>
        kind === 'bars' && bars
          ? {
              label: title,
              fill: colour(name),
              width: 0,
              paths: bars,
              points: { show: false },
            }
          : {
              label: title,
              stroke: colour(name),
              width: 1.5,
              dash: [...dashOf(name)],
              spanGaps: false,
              points: { show: true, filter: pointsShown, size: 5, fill: colour(name) },
            },
      ),
    ],
  }
}

/** The canvas needs a resolved colour, not light-dark(). */
function resolvedIn(element: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  element.append(probe)
  const value = getComputedStyle(probe).color
  probe.remove()
  return value
}

/** A line between few values would look like more than was measured, and a line through one is invisible. */
function pointsShown(self: uPlot, series: number): number[] {
  const values = self.data[series] ?? []
  const measured = [...values.keys()].filter((index) => (values[index] ?? null) !== null)
  if (measured.length < FEW) return measured
  return measured.filter((index) => (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null)
}

const everyBars = [1, 2, 3, 4, 6, 8, 12, 24, 48, 96]
const everySeconds = [1, 5, 15, 30, 60, 120, 300]

/** The times that have a label: every one, or every second, and so on, as there is room. */
function splitsOf(self: uPlot, unit: Unit, from: number, to: number): number[] {
  const room = Math.max(1, Math.floor(self.over.clientWidth / LABEL_WIDTH))
  if (unit === 'second') {
    const every = everySeconds.find((it) => (to - from) / it <= room) ?? Math.ceil((to - from) / room)
    const first = Math.ceil(from / every)
    return Array.from({ length: Math.floor(to / every) - first + 1 }, (_, index) => (first + index) * every)
  }
  const times = self.data[0]
  const step = everyBars.find((it) => times.length / it <= room) ?? Math.ceil(times.length / room)
  return [...times].filter((_, index) => index % step === 0)
}

/** As wide as its widest label. */
function roomForLabels(self: uPlot, labels: readonly string[] | null): number {
  self.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`
  const widths = (labels ?? []).map((label) => self.ctx.measureText(label).width / devicePixelRatio)
  return Math.ceil(Math.max(24, ...widths)) + 12
}

const DAY_MS = 86_400_000

const named = (parts: Intl.DateTimeFormatOptions): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-AU', { timeZone: 'Australia/Sydney', hourCycle: 'h23', ...parts })

/** The times below a chart. */
const tickNames = {
  day: named({ day: 'numeric', month: 'short' }),
  dayHour: named({ weekday: 'short', hour: '2-digit', minute: '2-digit' }),
  hour: named({ hour: '2-digit', minute: '2-digit' }),
  second: named({ hour: '2-digit', minute: '2-digit', second: '2-digit' }),
} as const

const readNames = {
  day: named({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' }),
  hour: named({ hour: '2-digit', minute: '2-digit' }),
} as const
