import { withoutTrailing } from '../../shared/without-trailing.ts'
import type { LeftOut } from '../chat/left-out.ts'
import type { ChatRequest } from '../chat/schema.ts'
import { chatToolName } from '../chat/tool-names.ts'
import type { ResponsesRequest, ResponsesTool } from './schema.ts'

/** Converts the tools of /responses to functions of a chat, and back. */

/** A tool as the caller knows it. */
export interface OwnTool {
  readonly kind: 'function' | 'custom'
  readonly name: string
  readonly namespace: string | undefined
}

export interface TranslatedTools {
  readonly functions: readonly object[]
  /** By the name in the chat. */
  readonly own: ReadonlyMap<string, OwnTool>
}

/** The name of a tool in the chat. A namespace becomes part of it. */
export function wireName(name: string, namespace: string | null | undefined): string {
  return chatToolName(namespace ? `${withoutTrailing(namespace, '_')}__${name}` : name)
}

export function chatTools(tools: readonly ResponsesTool[], without: LeftOut): TranslatedTools {
  const functions: object[] = []
  const own = new Map<string, OwnTool>()

  function add(tool: Omit<ResponsesTool, 'tools'>, namespace: string | undefined): void {
    const { type } = tool
    const name = tool.name ?? ''
    if ((type !== 'function' && type !== 'custom') || name === '') {
      without.add(`tool ${name || type} (of the type ${type})`)
      return
    }
    const wire = wireName(name, namespace)
    // The engine would take the same name twice for one tool.
    if (own.has(wire)) return without.add(`tool ${name} (the name ${wire} is taken)`)
    own.set(wire, { kind: type, name, namespace })
    functions.push({
      type: 'function',
      function: { name: wire, ...(type === 'custom' ? asFunction(tool) : plain(tool)) },
    })
  }

  for (const tool of tools) {
    if (tool.type !== 'namespace') add(tool, undefined)
    else for (const inner of tool.tools ?? []) add(inner, tool.name ?? undefined)
  }
  return { functions, own }
}

function plain({ description, parameters, strict }: Omit<ResponsesTool, 'tools'>): object {
  return {
    description: description ?? undefined,
    parameters: parameters ?? undefined,
    ...(strict === true ? { strict } : {}),
  }
}

/** A custom tool takes any text: a function with one string. Its grammar is described to the model in words. */
function asFunction({ description, format }: Omit<ResponsesTool, 'tools'>): object {
  const grammar =
    format?.type === 'grammar' && format.definition
      ? `Text in this ${format.syntax ?? ''} grammar:\n${format.definition}`
      : 'Any text.'
  return {
    description: description ?? undefined,
    parameters: {
      type: 'object',
      properties: { input: { type: 'string', description: grammar } },
      required: ['input'],
      additionalProperties: false,
    },
  }
}

/** The arguments of a function that stands for a custom tool. */
export function customArguments(input: string): string {
  return JSON.stringify({ input })
}

/** The model's input for a custom tool. Some models write the text itself. */
export function customInput(text: string): string {
  try {
    const { input } = JSON.parse(text) as { input?: unknown }
    return typeof input === 'string' ? input : text
  } catch {
    return text
  }
}

type Choice = Pick<ChatRequest, 'tool_choice'>

/** The tool_choice of a chat, and the tools that remain to choose from. */
export function chosenTools(
  choice: ResponsesRequest['tool_choice'],
  tools: TranslatedTools,
  without: LeftOut,
): Choice & { readonly functions: readonly object[] } {
  const { functions, own } = tools
  if (functions.length === 0 || choice === undefined || choice === null || choice === 'auto') return { functions }
  if (typeof choice === 'string') return { functions, tool_choice: choice }
  if (choice.type === 'allowed_tools') {
    const allowed = new Set((choice.tools ?? []).map(({ name }) => name))
    const kept = [...own.values()].map(({ name }) => allowed.has(name))
    return {
      functions: functions.filter((_, index) => kept[index]),
      ...(choice.mode === 'required' ? { tool_choice: 'required' } : {}),
    }
  }
  const wire = wireName(choice.name ?? '', choice.namespace)
  if (own.has(wire)) return { functions, tool_choice: { type: 'function', function: { name: wire } } }
  without.add(`tool_choice (there is no function ${choice.name ?? choice.type})`)
  return { functions }
}
