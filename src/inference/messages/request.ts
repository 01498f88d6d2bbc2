import type { Deployment, Model } from '../../catalog/model.ts'
import { leftOut } from '../chat/left-out.ts'
import type { ChatRequest } from '../chat/schema.ts'
import { chatToolName } from '../chat/tool-names.ts'
import type { CountTokensRequest, MessagesRequest, MessagesTool } from './schema.ts'
import { thinkingOf, type Thinking } from './thinking.ts'
import { messagesFromTurns } from './turns.ts'

/** A request of /messages as a chat, with what is needed for its answer. */
export interface TranslatedMessages {
  readonly chat: Readonly<Record<string, unknown>>
  /** The names that had to change, by the name in the chat. */
  readonly toolNames: ReadonlyMap<string, string>
  readonly thinking: Thinking
  readonly warnings: readonly string[]
}

export function chatFromMessages(
  request: CountTokensRequest & Partial<MessagesRequest>,
  model: Model,
  deployment: Deployment,
): TranslatedMessages {
  const without = leftOut(model, deployment)
  const tools = (request.tools ?? []).filter((tool) => {
    const isFunction = tool.type === undefined || tool.type === null || tool.type === 'custom'
    if (!isFunction) without.add(`tool ${tool.name} (of the type ${tool.type})`)
    return isFunction
  })
  const { tool_choice: choice, output_config: output } = request
  const schema = (output?.format ?? request.output_format)?.schema
  const oneAtATime = choice?.disable_parallel_tool_use === true && tools.length > 0 ? false : undefined
  const chat = {
    model: request.model,
    messages: messagesFromTurns(request, model),
    ...(tools.length > 0 ? { tools: tools.map(chatTool), ...chosen(choice) } : {}),
    parallel_tool_calls: without.hint('parallel_tool_calls', 'tool_choice.disable_parallel_tool_use', oneAtATime),
    reasoning_effort: without.hint('reasoning_effort', 'output_config.effort', output?.effort),
    response_format: schema && { type: 'json_schema', json_schema: { name: 'output', schema, strict: true } },
    max_tokens: request.max_tokens,
    stream: request.stream,
    temperature: request.temperature,
    top_p: request.top_p,
    top_k: request.top_k,
    stop: request.stop_sequences,
  }
  return {
    chat,
    toolNames: new Map(tools.map(({ name }) => [chatToolName(name), name])),
    thinking: thinkingOf(request.thinking),
    warnings: without.warnings,
  }
}

function chatTool({ name, description, input_schema: parameters, strict }: MessagesTool): object {
  return {
    type: 'function',
    function: {
      name: chatToolName(name),
      description: description ?? undefined,
      parameters: parameters ?? undefined,
      strict: strict ?? undefined,
    },
  }
}

function chosen(choice: MessagesRequest['tool_choice']): Pick<ChatRequest, 'tool_choice'> {
  switch (choice?.type) {
    case 'any':
      return { tool_choice: 'required' }
    case 'none':
      return { tool_choice: 'none' }
    case 'tool':
      return { tool_choice: { type: 'function', function: { name: chatToolName(choice.name ?? '') } } }
    default:
      return {}
  }
}
