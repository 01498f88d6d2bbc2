import type { Tone, View } from './view.ts'

export interface Column<Row> {
  readonly title: string
  cell(row: Row): string | null
  readonly align?: 'right'
  /** Whether a narrow terminal may truncate the text. Never for what the next command needs. */
  readonly mayShrink?: boolean
  tone?(row: Row): Tone | undefined
}

interface Cell {
  readonly text: string
  readonly tone: Tone | undefined
}

/** A column with its heading and all of its cells. */
interface Strip {
  readonly cells: readonly Cell[]
  readonly width: number
  readonly isRight: boolean
  readonly mayShrink: boolean
}

const GAP = '  '
const NARROWEST_COLUMN = 8

/**
 * One line per row; columns that are empty in every row are left out. If a terminal is too narrow even for shortened
 * columns, the first column gets a line of its own.
 */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  view: View,
  /** A second line below a row, such as a long id. */
  detail?: (row: Row) => string | undefined,
): string {
  if (rows.length === 0) return '(none)'
  const strips = columns.flatMap((column) => stripOf(column, rows))
  const fitted = fit(strips, view.width)
  const [first, ...others] = fitted
  const isStacked = totalWidth(fitted) > view.width && first !== undefined && others.length > 0
  const rest = isStacked ? fit(others, view.width - GAP.length) : fitted
  const lines: string[] = []
  for (const [number, row] of [undefined, ...rows].entries()) {
    if (isStacked) lines.push(lineOf([first], number, view), GAP + lineOf(rest, number, view))
    else lines.push(lineOf(fitted, number, view))
    const below = row === undefined ? undefined : detail?.(row)
    if (below !== undefined) lines.push(GAP + view.paint('dim', below))
  }
  return lines.join('\n')
}

/** Names and values, one per line, for a single thing. Empty values are left out. */
export function renderFields(fields: readonly (readonly [string, string | null])[], view: View): string {
  const shown = fields.filter((field): field is [string, string] => field[1] !== null && field[1] !== '')
  const width = shown.reduce((widest, [name]) => Math.max(widest, name.length), 0)
  return shown.map(([name, value]) => `${view.paint('dim', name.padEnd(width))}${GAP}${value}`).join('\n')
}

/** Truncates text with an ellipsis. */
export function shorten(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`
}

function stripOf<Row>(column: Column<Row>, rows: readonly Row[]): readonly Strip[] {
  const texts = rows.map((row) => column.cell(row) ?? '')
  if (texts.every((text) => text === '')) return []
  const cells = rows.map((row, index) => ({ text: texts[index] || '-', tone: column.tone?.(row) }))
  const width = texts.reduce((widest, text) => Math.max(widest, text.length), column.title.length)
  const heading: Cell = { text: column.title, tone: 'bold' }
  const { align, mayShrink = false } = column
  return [{ cells: [heading, ...cells], width, isRight: align === 'right', mayShrink }]
}

/** A line of the table; 0 is the heading. */
function lineOf(strips: readonly Strip[], number: number, { paint }: View): string {
  const parts = strips.map(({ cells, width, isRight }, index) => {
    const { text: whole = '', tone } = cells[number] ?? {}
    const text = shorten(whole, width)
    const painted = tone ? paint(tone, text) : text
    const padding = ' '.repeat(width - text.length)
    if (isRight) return padding + painted
    // No line ends with spaces.
    return index === strips.length - 1 ? painted : painted + padding
  })
  return parts.join(GAP)
}

/** Shrinks the widest column that may shrink, as often as needed. */
function fit(strips: readonly Strip[], width: number): readonly Strip[] {
  let fitted = strips
  while (totalWidth(fitted) > width) {
    const widest = fitted
      .filter((strip) => strip.mayShrink && strip.width > NARROWEST_COLUMN)
      .toSorted((one, other) => other.width - one.width)[0]
    if (!widest) return strips
    fitted = fitted.map((strip) => (strip === widest ? { ...strip, width: strip.width - 1 } : strip))
  }
  return fitted
}

function totalWidth(strips: readonly Strip[]): number {
  return strips.reduce((sum, { width }) => sum + width, GAP.length * (strips.length - 1))
}
