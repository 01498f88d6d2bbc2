import type { ChatRequest, Json, JsonObject } from '../runtime/engine-model.ts'

export interface ToolCall {
  name: string
  arguments: string
}

/** What a forced call must look like: one of the tools, with arguments that fit its schema. */
export function forcedCallSchema({ tools, toolChoice }: ChatRequest): JsonObject | undefined {
  if (toolChoice === 'none' || toolChoice === 'auto') return undefined
  const allowed = toolChoice === 'required' ? tools : tools.filter((tool) => tool.name === toolChoice.name)
  return {
    anyOf: allowed.map(({ name, parameters }) => ({
      type: 'object',
      properties: { name: { const: name }, arguments: hoisted(parameters ?? { type: 'object' }) },
      required: ['name', 'arguments'],
    })),
  }
}

/** References inside a tool's schema start at that schema, not at ours: put the target in their place, once deep. */
function hoisted(schema: JsonObject): Json {
  const definitions = { ...(schema['$defs'] as JsonObject), ...(schema['definitions'] as JsonObject) }
  const replace = (value: Json, depth: number): Json => {
    if (Array.isArray(value)) return value.map((item) => replace(item, depth))
    if (typeof value !== 'object' || value === null) return value
    const name = typeof value['$ref'] === 'string' ? value['$ref'].split('/').at(-1) : undefined
    if (name !== undefined) return depth > 8 ? true : replace(definitions[name] ?? true, depth + 1)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replace(item, depth)]))
  }
  const { $defs: _, definitions: __, ...rest } = schema
  return Object.keys(definitions).length === 0 ? schema : replace(rest, 0)
}

/** Reads `{"name": …, "arguments": {…}}`; undefined when the model wrote something else. */
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
