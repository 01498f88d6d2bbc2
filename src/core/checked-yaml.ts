import { isMap, LineCounter, parseDocument, type Document } from 'yaml'
import type { Static, TSchema } from 'typebox'
import { check, formatPath, type Path, type Problem } from './schema-check.ts'

/** A mistake in a file an operator wrote, told with the place and what would be right. */
export class FileMistake extends Error {}

/** A YAML document that has passed its schema and still knows its line numbers. */
export interface CheckedYaml<Data> {
  readonly data: Data
  /** The mistake to throw for what a schema cannot say. */
  mistake(path: Path, message: string): FileMistake
}

export function parseCheckedYaml<Schema extends TSchema>(
  text: string,
  file: string,
  schema: Schema,
): CheckedYaml<Static<Schema>> {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const broken = document.errors[0]
  if (broken) throw new FileMistake(`${file}:${lines.linePos(broken.pos[0]).line}: ${broken.message}`)
  const mistake = (path: Path, message: string): FileMistake =>
    new FileMistake(`${file}:${lineOf(document, lines, path)}: ${formatPath(path)}: ${message}`)
  const data: unknown = document.toJS() ?? {}
  const problem = check(schema, data)
  if (problem) throw mistake(problem.path, explain(problem, valueAt(data, problem.path)))
  return { data: data as Static<Schema>, mistake }
}

function explain(problem: Problem, value: unknown): string {
  switch (problem.kind) {
    case 'missing':
      return `is required: ${problem.expected}`
    case 'unknown':
      return `is not a known key; allowed here: ${problem.expected}`
    case 'type':
    case 'value':
      return `must be ${problem.expected}, but is ${JSON.stringify(value)}`
  }
}

/** The line of the key, or of the nearest thing around it that is there. */
function lineOf(document: Document, lines: LineCounter, path: Path): number {
  for (let length = path.length; length > 0; length--) {
    const key = path[length - 1]
    const parent: unknown = length === 1 ? document.contents : document.getIn(path.slice(0, length - 1), true)
    if (isMap(parent)) {
      const pair = parent.items.find((item) => String(item.key) === key)
      const range = (pair?.key as { range?: readonly number[] } | undefined)?.range
      if (range?.[0] !== undefined) return lines.linePos(range[0]).line
    }
    const node = document.getIn(path.slice(0, length), true) as { range?: readonly number[] } | undefined
    if (node?.range?.[0] !== undefined) return lines.linePos(node.range[0]).line
  }
  return 1
}

function valueAt(data: unknown, path: Path): unknown {
  let value = data
  for (const step of path) value = (value as Record<string | number, unknown> | undefined)?.[step]
  return value
}
