import { isMap, LineCounter, parseDocument, visit, type Document } from 'yaml'
import type { Static, TSchema } from 'typebox'
import { findSchemaProblem, formatPath, type Path, type SchemaProblem } from './json/schema-check.ts'

/** A mistake in a file that an operator wrote. The message says where it is and what is allowed. */
export class ConfigError extends Error {}

/** A YAML document that has passed its schema and still knows its line numbers. */
export interface CheckedYaml<Data> {
  readonly data: Data
  /** An error for a rule that a schema cannot express. */
  errorAt(path: Path, message: string): ConfigError
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
  const errorAt = (path: Path, message: string): ConfigError =>
    new ConfigError(`${file}:${lineOf(document, lines, path)}: ${formatPath(path) || 'the file'}: ${message}`)
  const unknown = unknownAlias(document)
  if (unknown) {
    const line = lines.linePos(unknown.at).line
    throw new ConfigError(`${file}:${line}: *${unknown.name} refers to an anchor that is not defined above it`)
  }
  const data = toData(document, file)
  const problem = findSchemaProblem(schema, data)
  if (problem) throw errorAt(problem.path, explain(problem, valueAt(data, problem.path)))
  return { data: data as Static<Schema>, errorAt }
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
