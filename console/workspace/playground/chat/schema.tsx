import type { ComponentChildren } from 'preact'

/** Tools and JSON schemas as people read them: names, types and descriptions instead of brackets. */

interface Schema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
}

interface Tool {
  readonly function?: { readonly name?: string; readonly description?: string; readonly parameters?: Schema }
}

export function ToolsView({ text }: { text: string }) {
  const tools = read(text)
  if (!Array.isArray(tools)) return null
  return (
    <Summary title="Tools as the model sees them">
      {(tools as readonly (Tool | null)[]).map((tool, index) => (
        <div key={index}>
          <strong>{tool?.function?.name ?? 'A tool without a name'}</strong>
          {tool?.function?.description === undefined ? null : <p class="soft">{tool.function.description}</p>}
          <Properties of={tool?.function?.parameters} depth={0} />
        </div>
      ))}
    </Summary>
  )
}

export function SchemaView({ text }: { text: string }) {
  const schema = read(text) as Schema | undefined
  if (typeof schema !== 'object' || schema === null) return null
  return (
    <Summary title="Fields of the answer">
      <Properties of={schema} depth={0} />
    </Summary>
  )
}

function Summary({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="schema stack tight small" aria-label={title}>
      {children}
    </section>
  )
}

/** Deeper levels are in the JSON above. */
const DEPTH_MAX = 4

function Properties({ of, depth }: { of: Schema | undefined; depth: number }) {
  const properties = Object.entries(of?.properties ?? {})
  if (properties.length === 0 || depth > DEPTH_MAX) return null
  const required = new Set(of?.required)
  return (
    <ul>
      {properties.map(([name, schema]) => (
        <li key={name}>
          <code>{name}</code>{' '}
          <span class="soft">
            {typeOf(schema)}
            {required.has(name) ? ', required' : ''}
          </span>
          {schema.description === undefined ? null : <p class="soft">{schema.description}</p>}
          <Properties of={schema.items ?? schema} depth={depth + 1} />
        </li>
      ))}
    </ul>
  )
}

function typeOf({ type, enum: values, items }: Schema): string {
  if (values) return `one of ${values.map((it) => JSON.stringify(it)).join(', ')}`
  if (type === 'array' && items) return `list of ${typeOf(items)}`
  return [type ?? 'any'].flat().join(' or ')
}

function read(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
