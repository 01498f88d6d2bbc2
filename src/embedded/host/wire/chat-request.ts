import { EngineError, invalidValue } from '../runtime/engine-model.ts'
import type { ChatMessage, ChatRequest, OutputFormat, ToolChoice, ToolDefinition } from '../runtime/engine-model.ts'
import { isObject, optionalArray, optionalBoolean, optionalInteger, optionalObject, optionalString } from './fields.ts'
import { required, requiredArray, requiredString } from './fields.ts'
import type { Fields } from './fields.ts'
import { readSampling } from './sampling-fields.ts'

export function readChatRequest(body: Fields): ChatRequest {
  const topLogprobs = optionalBoolean(body, 'logprobs')
    ? (optionalInteger(body, 'top_logprobs', 0, 20) ?? 0)
    : undefined
  const messages = requiredArray(body, 'messages').map((message, index) => readMessage(message, `messages[${index}]`))
  if (messages.length === 0) throw invalidValue('messages', "'messages' must not be empty.")
  const tools = (optionalArray(body, 'tools') ?? []).map(readTool)
  return {
    messages,
    sampling: readSampling(body, topLogprobs),
    tools,
    toolChoice: readToolChoice(body['tool_choice'], tools),
    format: readFormat(optionalObject(body, 'response_format')),
    templateVariables: optionalObject(body, 'chat_template_kwargs') ?? {},
  }
}

const roles: Record<string, ChatMessage['role']> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
}

function readMessage(message: unknown, param: string): ChatMessage {
  if (!isObject(message)) throw new EngineError(400, 'invalid_type', `'${param}' must be an object.`, param)
  const role = roles[requiredString(message, 'role')]
  if (!role) throw invalidValue(`${param}.role`, `'${param}.role' must be one of ${Object.keys(roles).join(', ')}.`)
  const toolCalls = optionalArray(message, 'tool_calls')?.map(readToolCall)
  const toolCallId = optionalString(message, 'tool_call_id')
  return {
    role,
    ...readContent(message['content'], `${param}.content`),
    ...(toolCalls ? { toolCalls } : {}),
    ...(toolCallId === undefined ? {} : { toolCallId }),
  }
}

function readContent(content: unknown, param: string): { text: string; images: Buffer[] } {
  if (content === undefined || content === null) return { text: '', images: [] }
  if (typeof content === 'string') return { text: content, images: [] }
  if (!Array.isArray(content))
    throw new EngineError(400, 'invalid_type', `'${param}' must be a string or parts.`, param)
  const texts: string[] = []
  const images: Buffer[] = []
  for (const part of content as unknown[]) {
    const fields = isObject(part) ? part : {}
    if (fields['type'] === 'text') texts.push(requiredString(fields, 'text'))
    else if (fields['type'] === 'image_url') images.push(readImage(fields['image_url'], param))
    else throw new EngineError(400, 'unsupported_content', `'${param}' holds a part that is not supported.`, param)
  }
  return { text: texts.join('\n'), images }
}

function readImage(image: unknown, param: string): Buffer {
  const url = isObject(image) ? requiredString(image, 'url') : image
  const data = typeof url === 'string' ? /^data:[^,]*;base64,/i.exec(url) : null
  // The engine never fetches: whoever may reach which host is decided before a request gets here.
  if (typeof url !== 'string' || !data) throw invalidValue(param, 'Images must be base64 data: URLs.')
  return Buffer.from(url.slice(data[0].length), 'base64')
}

function readToolCall(call: unknown): { id: string; name: string; arguments: string } {
  const fields = isObject(call) ? call : {}
  const details: Fields = required(optionalObject(fields, 'function'), 'tool_calls[].function')
  return {
    id: optionalString(fields, 'id') ?? '',
    name: requiredString(details, 'name'),
    arguments: optionalString(details, 'arguments') ?? '{}',
  }
}

function readTool(tool: unknown): ToolDefinition {
  const fields: Fields = required(isObject(tool) ? optionalObject(tool, 'function') : undefined, 'tools[].function')
  const description = optionalString(fields, 'description')
  const parameters = optionalObject(fields, 'parameters')
  return {
    name: requiredString(fields, 'name'),
    ...(description === undefined ? {} : { description }),
    ...(parameters ? { parameters } : {}),
  }
}

function readToolChoice(choice: unknown, tools: readonly ToolDefinition[]): ToolChoice {
  if (tools.length === 0) return 'none'
  if (choice === undefined || choice === null) return 'auto'
  if (choice === 'none' || choice === 'auto' || choice === 'required') return choice
  const details: Fields | undefined = isObject(choice) ? optionalObject(choice, 'function') : undefined
  const name = details && requiredString(details, 'name')
  if (name === undefined || !tools.some((tool) => tool.name === name)) {
    throw invalidValue('tool_choice', "'tool_choice' must be none, auto, required, or name one of 'tools'.")
  }
  return { name }
}

function readFormat(format: Fields | undefined): OutputFormat {
  switch (format?.['type']) {
    case undefined:
    case 'text':
      return { kind: 'text' }
    case 'json_object':
      return { kind: 'json' }
    case 'json_schema': {
      const schema = optionalObject(optionalObject(format, 'json_schema') ?? {}, 'schema')
      return { kind: 'json_schema', schema: required(schema, 'response_format.json_schema.schema') }
    }
    default:
      throw invalidValue('response_format', "'response_format.type' must be text, json_object or json_schema.")
  }
}
