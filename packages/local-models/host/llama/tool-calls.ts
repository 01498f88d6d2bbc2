import type { EngineChatRequest } from '../runtime/engine-model.ts'
import type { JsonObject, JsonValue } from '../runtime/json-value.ts'

export interface ToolCall {
  readonly name: string
  readonly arguments: string
}

const MAX_REFERENCE_DEPTH = 8

/** The schema of a forced call: one of the allowed tools, with arguments that match the tool's own schema. */
export function forcedCallSchema({ tools, toolChoice }: EngineChatRequest): JsonObject | undefined {
  if (toolChoice === 'none' || toolChoice === 'auto') return undefined
  const allowed = toolChoice === 'required' ? tools : tools.filter((tool) => tool.name === toolChoice.name)
  return {
    anyOf: allowed.map(({ name, parameters }) => ({
      type: 'object',
      properties: { name: { const: name }, arguments: withoutReferences(parameters ?? { type: 'object' }) },
      required: ['name', 'arguments'],
    })),
  }
}

/** References in a tool's schema are relative to that schema, not to ours, so each is replaced by what it refers to. */
function withoutReferences(schema: JsonObject): JsonValue {
  const definitions = { ...(schema['$defs'] as JsonObject), ...(schema['definitions'] as JsonObject) }
  const replace = (value: JsonValue, depth: number): JsonValue => {
    if (Array.isArray(value)) return value.map((item) => replace(item, depth))
    if (typeof value !== 'object' || value === null) return value
    const name = typeof value['$ref'] === 'string' ? value['$ref'].split('/').at(-1) : undefined
    if (name !== undefined) return depth > MAX_REFERENCE_DEPTH ? true : replace(definitions[name] ?? true, depth + 1)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replace(item, depth)]))
  }
  const { $defs: _defs, definitions: _definitions, ...rest } = schema
  return Object.keys(definitions).length === 0 ? schema : replace(rest, 0)
}

/** Reads `{"name": …, "arguments": {…}}`. Undefined if the model wrote something else. */
export function parseToolCall(text: string): ToolCall | undefined {
  try {
    const call = JSON.parse(text) as { name?: unknown; arguments?: unknown; parameters?: unknown }
    if (typeof call.name !== 'string') return undefined
    const given = call.arguments ?? call.parameters ?? {}
    return { name: call.name, arguments: typeof given === 'string' ? given : JSON.stringify(given) }
  } catch {
    return undefined
  }
}

/** Around the JSON of a call that a model writes without its tags: a fence, or the tags that list the tools. */
const wrappings = [
  ['```json', '```'],
  ['```', '```'],
  ['<tools>', '</tools>'],
] as const

/** A call that is all of an answer. Undefined if the text is something else, or names none of the tools. */
export function bareToolCall(text: string, names: readonly string[]): ToolCall | undefined {
  const bare = text.trim()
  const wrapping = wrappings.find(([opening, closing]) => bare.startsWith(opening) && bare.endsWith(closing))
  const call = parseToolCall(wrapping ? bare.slice(wrapping[0].length, -wrapping[1].length) : bare)
  return call && names.includes(call.name) ? call : undefined
}
