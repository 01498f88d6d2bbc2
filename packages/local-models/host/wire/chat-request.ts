import { HostError, parameterError } from '../runtime/host-error.ts'
import type {
  EngineChatMessage,
  EngineChatRequest,
  OutputFormat,
  ToolChoice,
  ToolDefinition,
} from '../runtime/engine-model.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../runtime/json-value.ts'
import {
  optionalArray,
  optionalBoolean,
  optionalInteger,
  optionalObject,
  optionalString,
  required,
  requiredArray,
  requiredString,
} from './fields.ts'
import { readSampling } from './sampling-fields.ts'

const MAX_TOP_LOGPROBS = 20

const roles: Readonly<Record<string, EngineChatMessage['role']>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
}

export function readChatRequest(body: JsonObject): EngineChatRequest {
  const topLogprobs = optionalBoolean(body, 'logprobs')
    ? (optionalInteger(body, 'top_logprobs', 0, MAX_TOP_LOGPROBS) ?? 0)
    : undefined
  const messages = requiredArray(body, 'messages').map((message, index) => readMessage(message, `messages[${index}]`))
  if (messages.length === 0) throw parameterError('invalid_value', 'messages', 'a list of at least one message')
  const tools = (optionalArray(body, 'tools') ?? []).map(readTool)
  return {
    messages,
    sampling: readSampling(body, topLogprobs),
    tools,
    toolChoice: readToolChoice(body['tool_choice'], tools),
    parallelToolCalls: optionalBoolean(body, 'parallel_tool_calls') ?? true,
    format: readFormat(optionalObject(body, 'response_format')),
    templateVariables: optionalObject(body, 'chat_template_kwargs') ?? {},
  }
}

function readMessage(message: JsonValue, param: string): EngineChatMessage {
  if (!isJsonObject(message)) throw parameterError('invalid_type', param, 'an object')
  const role = roles[requiredString(message, 'role')]
  if (!role) throw parameterError('invalid_value', `${param}.role`, `one of ${Object.keys(roles).join(', ')}`)
  return {
    role,
    ...readContent(message['content'], `${param}.content`),
    toolCalls: (optionalArray(message, 'tool_calls') ?? []).map(readToolCall),
  }
}

function readContent(content: JsonValue | undefined, param: string): Pick<EngineChatMessage, 'text' | 'images'> {
  if (content === undefined || content === null) return { text: '', images: [] }
  if (typeof content === 'string') return { text: content, images: [] }
  if (!Array.isArray(content)) throw parameterError('invalid_type', param, 'a string or a list of parts')
  const texts: string[] = []
  const images: Buffer[] = []
  for (const part of content) {
    const fields = isJsonObject(part) ? part : {}
    if (fields['type'] === 'text') texts.push(requiredString(fields, 'text'))
    else if (fields['type'] === 'image_url') images.push(readImage(fields['image_url'], param))
    else throw new HostError('unsupported_content', `'${param}' has a part of an unsupported type.`, { param })
  }
  return { text: texts.join('\n'), images }
}

function readImage(image: JsonValue | undefined, param: string): Buffer {
  const url = isJsonObject(image) ? requiredString(image, 'url') : image
  const data = typeof url === 'string' ? /^data:[^,]*;base64,/i.exec(url) : null
  // The host never fetches anything. The service decides which hosts may be reached.
  if (typeof url !== 'string' || !data) {
    throw new HostError('invalid_value', 'Images must be base64 data: URLs.', { param })
  }
  return Buffer.from(url.slice(data[0].length), 'base64')
}

function readToolCall(call: JsonValue): EngineChatMessage['toolCalls'][number] {
  const fields = isJsonObject(call) ? call : {}
  const details = required(optionalObject(fields, 'function'), 'tool_calls[].function')
  return { name: requiredString(details, 'name'), arguments: optionalString(details, 'arguments') ?? '{}' }
}

function readTool(tool: JsonValue): ToolDefinition {
  const fields = required(isJsonObject(tool) ? optionalObject(tool, 'function') : undefined, 'tools[].function')
  const description = optionalString(fields, 'description')
  const parameters = optionalObject(fields, 'parameters')
  return {
    name: requiredString(fields, 'name'),
    ...(description === undefined ? {} : { description }),
    ...(parameters ? { parameters } : {}),
  }
}

function readToolChoice(choice: JsonValue | undefined, tools: readonly ToolDefinition[]): ToolChoice {
  if (tools.length === 0) return 'none'
  if (choice === undefined || choice === null) return 'auto'
  if (choice === 'none' || choice === 'auto' || choice === 'required') return choice
  const details = isJsonObject(choice) ? optionalObject(choice, 'function') : undefined
  const name = details && requiredString(details, 'name')
  if (name !== undefined && tools.some((tool) => tool.name === name)) return { name }
  throw parameterError('invalid_value', 'tool_choice', "none, auto, required, or the name of one of 'tools'")
}

function readFormat(format: JsonObject | undefined): OutputFormat {
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
      throw parameterError('invalid_value', 'response_format.type', 'text, json_object or json_schema')
  }
}
