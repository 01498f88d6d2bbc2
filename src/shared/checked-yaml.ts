import { isMap, LineCounter, parseDocument, visit, type Document } from 'yaml'
import type { Static, TSchema } from 'typebox'
import { formatPath, type Path, type SchemaProblem } from './json/schema-check.ts'
import { findSchemaProblems } from './json/schema-problems.ts'

/** A mistake in what an operator wrote. The message says where it is and what is allowed. */
export class ConfigError extends Error {
  /** All mistakes that were found, each in one line. */
  readonly mistakes: readonly string[]

  constructor(mistakes: string | readonly string[], options?: ErrorOptions) {
    const [first = '', ...others] = typeof mistakes === 'string' ? [mistakes] : mistakes
    const more = others.length === 1 ? '1 more mistake' : `${others.length} more mistakes`
    super(others.length === 0 ? first : `${first} (and ${more}: weir check lists them)`, options)
    this.mistakes = [first, ...others]
  }
}

/**
 * A YAML document that has been checked against its schema and still has its line numbers. Mistakes are collected, so
 * that an operator sees all of them at once. `data` has its declared type only if there are none.
 */
export interface CheckedYaml<Data> {
  readonly data: Data
  /** Adds a violation of a rule that a schema cannot express. */
  mistake(path: Path, message: string): void
  /** Whether something at or below the path breaks the schema. */
  isBroken(path: Path): boolean
  /** The line of a key, as FILE:LINE. */
  placeOf(path: Path): string
  /** Throws a `ConfigError` if there were mistakes, in the order of the file. */
  requireCorrect(): void
}

interface Mistake {
  readonly line: number
  readonly text: string
}

export function parseCheckedYaml<Schema extends TSchema>(
  text: string,
  file: string,
  schema: Schema,
): CheckedYaml<Static<Schema>> {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const syntaxError = document.errors[0]
  if (syntaxError) {
    throw new ConfigError(`${file}:${lines.linePos(syntaxError.pos[0]).line}: ${syntaxError.message}`)
  }
  const mistakes: Mistake[] = []
  const mistake = (path: Path, message: string): void => {
    const line = lineOf(document, lines, path)
    mistakes.push({ line, text: `${file}:${line}: ${formatPath(path) || 'the file'}: ${message}` })
  }
  const unknown = unknownAlias(document)
  if (unknown) {
    const line = lines.linePos(unknown.at).line
    throw new ConfigError(`${file}:${line}: *${unknown.name} refers to an anchor that is not defined above it`)
  }
  const data = toData(document, file)
  const problems = findSchemaProblems(schema, data)
  for (const problem of problems) mistake(problem.path, explain(problem, valueAt(data, problem.path)))
  return {
    data: data as Static<Schema>,
    mistake,
    isBroken: (path) => problems.some((problem) => path.every((step, index) => problem.path[index] === step)),
    placeOf: (path) => `${file}:${lineOf(document, lines, path)}`,
    requireCorrect() {
      if (mistakes.length === 0) return
      throw new ConfigError(mistakes.toSorted((one, other) => one.line - other.line).map(({ text }) => text))
    },
  }
}

function explain(problem: SchemaProblem, value: unknown): string {
  switch (problem.kind) {
    case 'missing':
      return `is required: ${problem.expected}`
    case 'unknown':
      return `is not a known key; allowed here: ${problem.expected}`
    case 'type':
    case 'value':
      return `must be ${problem.expected}, but is ${shown(value)}`
  }
}

const MAX_SHOWN = 100

function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

/** The first alias whose anchor is not defined before it. */
function unknownAlias(document: Document): { readonly name: string; readonly at: number } | undefined {
  let found: { name: string; at: number } | undefined
  visit(document, {
    Alias(_key, alias) {
      if (alias.resolve(document)) return undefined
      found = { name: alias.source, at: alias.range?.[0] ?? 0 }
      return visit.BREAK
    },
  })
  return found
}

/** Throws when nested aliases would expand without bound. */
function toData(document: Document, file: string): unknown {
  try {
    return document.toJS() ?? {}
  } catch (cause) {
    throw new ConfigError(`${file}: ${(cause as Error).message}`, { cause })
  }
}

/** The line of the key, or of its nearest parent that exists. */
function lineOf(document: Document, lines: LineCounter, path: Path): number {
  for (let length = path.length; length > 0; length--) {
    const key = path[length - 1]
    const parent: unknown = document.getIn(path.slice(0, length - 1), true)
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
