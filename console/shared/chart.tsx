import { createContext, type ComponentChildren } from 'preact'
import { useContext, useMemo, useState } from 'preact/hooks'
import { ALL, colourAt, OTHERS } from './chart-colours.ts'
import { date, sydneyDate, time, exactTime } from './format.ts'
import type { Measure } from './measures.ts'
import { Table } from './parts.tsx'
import { dashOf, Plot, type Line, type Unit } from './plot.tsx'

/**
 * Values over time. Each chart has a sentence that summarizes it, and its numbers as a table. A drag zooms, and a click in
 * the legend shows some lines alone.
 */

export type { Line } from './plot.tsx'

export interface ChartProps {
  readonly title: string
  /** A summary of the chart in words. */
  readonly summary: string
  /** Unix ms: the beginning of each hour or day, or the moment of a sample. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  readonly unit: Unit
  readonly measure: Measure
  /** Bars are stacked, so they are for values that add up. */
  readonly kind: 'bars' | 'lines'
  /** What else is known about a time, such as how many requests its values come from. */
  readonly noteOf?: (at: number) => string
}

/** From the first moment until before the last one, in Unix ms. */
interface Span {
  readonly from: number
  readonly to: number
}

interface View {
  readonly zoom: Span | undefined
  /** The titles of the lines that are shown alone; none: all of them. */
  readonly chosen: readonly string[]
}

interface Group {
  readonly view: View
  readonly setView: (view: View) => void
  /** Shows these days alone, in everything on the page. */
  readonly choosePeriod?: (from: string, to: string) => void
}

const GroupContext = createContext<Group | undefined>(undefined)
const wholeView: View = { zoom: undefined, chosen: [] }

/** Charts that zoom together, and show the same lines alone. */
export function ChartGroup({
  choosePeriod,
  children,
}: {
  choosePeriod?: (from: string, to: string) => void
  children: ComponentChildren
}) {
  const [view, setView] = useState(wholeView)
  const group = useMemo(() => ({ view, setView, ...(choosePeriod ? { choosePeriod } : {}) }), [view, choosePeriod])
  return <GroupContext.Provider value={group}>{children}</GroupContext.Provider>
}

function useView(): Group {
  const [view, setView] = useState(wholeView)
  return useContext(GroupContext) ?? { view, setView }
}

const HOUR_MS = 3_600_000

/** Where a bar ends. */
function endOf(times: readonly number[], index: number, unit: Unit): number {
  const usual = unit === 'day' ? 24 * HOUR_MS : unit === 'hour' ? HOUR_MS : 1
  return times[index + 1] ?? (times[index] ?? 0) + usual
}

export function Chart(props: ChartProps) {
  const { title, summary, unit, measure } = props
  const { view, setView, choosePeriod } = useView()
  const [isTable, setTable] = useState(false)
  const all = useMemo(
    () => props.lines.map((line, index) => ({ ...line, colour: line.colour ?? colourAt(index) })),
    [props.lines],
  )
  const { times, lines, zoom } = useMemo(() => seen(props.times, all, view), [props.times, all, view])
  const choose = (chosen: string): void => {
    const others = view.chosen.filter((it) => it !== chosen)
    setView({ ...view, chosen: others.length < view.chosen.length ? others : [...others, chosen] })
  }
  const zoomTo = (first: number, last: number): void =>
    setView({ ...view, zoom: { from: times[first] ?? 0, to: endOf(times, last, unit) } })
  return (
    <section class="panel stack tight chart" aria-label={title}>
      <div class="row apart">
        <h3>{title}</h3>
        <div class="row">
          {zoom && choosePeriod && unit === 'day' ? (
            <button
              type="button"
              class="plain"
              onClick={() => {
                setView({ ...view, zoom: undefined })
                choosePeriod(sydneyDate(zoom.from), sydneyDate(zoom.to - 1))
              }}
            >
              Show these days
            </button>
          ) : null}
          {zoom ? (
            <button type="button" class="plain" onClick={() => setView({ ...view, zoom: undefined })}>
              Zoom out
            </button>
          ) : null}
          <button type="button" class="plain" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
            {isTable ? 'Show chart' : 'Show numbers'}
          </button>
        </div>
      </div>
      <p class="small soft">{summary}</p>
      {isTable ? (
        <Table
          caption={`${title}, in numbers`}
          rows={times.map((at, index) => ({ at, index }))}
          keyOf={({ at }) => String(at)}
          columns={[
            { title: 'Time in Sydney', cell: ({ at }) => tableTime(at, unit) },
            ...lines.map(({ title: name, values }) => ({
              title: name,
              isNumber: true,
              cell: ({ index }: { index: number }) => <Value of={values[index] ?? null} measure={measure} />,
            })),
          ]}
        />
      ) : (
        <Plot
          {...props}
          times={times}
          lines={lines}
          ends={times.map((_, index) => endOf(times, index, unit))}
          zoomTo={zoomTo}
          zoomOut={() => setView({ ...view, zoom: undefined })}
        />
      )}
      {all.length > 1 ? <Legend of={all} shown={lines} kind={props.kind} choose={choose} /> : null}
    </section>
  )
}

/** The part of a chart that is seen. A zoom or a choice that leaves nothing of this chart does not apply to it. */
function seen(
  times: readonly number[],
  lines: readonly (Line & { colour: string })[],
  { zoom, chosen }: View,
): { times: readonly number[]; lines: readonly (Line & { colour: string })[]; zoom: Span | undefined } {
  const some = lines.filter(({ title }) => chosen.includes(title))
  const shown = some.length === 0 ? lines : some
  const first = zoom ? times.findIndex((at) => at >= zoom.from && at < zoom.to) : -1
  if (!zoom || first === -1) return { times, lines: shown, zoom: undefined }
  const inside = times.filter((at) => at >= zoom.from && at < zoom.to)
  const part = (values: Line['values']): Line['values'] => values.slice(first, first + inside.length)
  return { times: inside, lines: shown.map((line) => ({ ...line, values: part(line.values) })), zoom }
}

const tableTime = (at: number, unit: Unit): string =>
  unit === 'day' ? date(at) : unit === 'hour' ? time(at) : exactTime(at)

function Value({ of: value, measure }: { of: number | null; measure: Measure }) {
  return value === null ? <>–</> : <span title={measure.exact(value)}>{measure.text(value)}</span>
}

function Legend({
  of: lines,
  shown,
  kind,
  choose,
}: {
  of: readonly (Line & { colour: string })[]
  shown: readonly Line[]
  kind: ChartProps['kind']
  choose: (title: string) => void
}) {
  const isAll = shown.length === lines.length
  return (
    <ul class="legend" aria-label="Show alone">
      {lines.map(({ title, colour }) => (
        <li key={title}>
          <button
            type="button"
            aria-pressed={!isAll && shown.some((it) => it.title === title)}
            class={isAll || shown.some((it) => it.title === title) ? '' : 'off'}
            onClick={() => choose(title)}
          >
            <svg width={kind === 'bars' ? 10 : 22} height="10" aria-hidden="true" style={{ color: `var(${colour})` }}>
              {kind === 'bars' ? (
                <rect width="10" height="10" rx="2" fill="currentColor" />
              ) : (
                <line
                  x2="22"
                  y1="5"
                  y2="5"
                  stroke="currentColor"
                  stroke-width="2"
                  stroke-dasharray={dashOf(colour).join(' ')}
                />
              )}
            </svg>
            {title}
          </button>
        </li>
      ))}
    </ul>
  )
}

/** A line that is no member of the others, such as their rest or all of them together. */
export const othersLine = (values: Line['values']): Line => ({ title: 'others', values, colour: OTHERS })
export const allLine = (values: Line['values']): Line => ({ title: 'all', values, colour: ALL })
