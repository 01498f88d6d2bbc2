import type { Deployment, Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import { leftOut } from '../chat/left-out.ts'
import type { ResponsesRequest } from './schema.ts'
import { chatTools, chosenTools, type OwnTool } from './tools.ts'
import { messagesFromItems } from './turns.ts'

/** A request of /responses as a chat, with what is needed for its answer. */
export interface TranslatedResponses {
  readonly chat: Readonly<Record<string, unknown>>
  readonly tools: ReadonlyMap<string, OwnTool>
  /** The request's settings, which every response repeats: neither the prompt nor the tools. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly sealsReasoning: boolean
  readonly warnings: readonly string[]
}

/** Clients put it into `include` if they will send the reasoning back. */
const SEALED = 'reasoning.encrypted_content'

export function chatFromResponses(
  request: ResponsesRequest,
  model: Model,
  deployment: Deployment,
): TranslatedResponses {
  requireStateless(request)
  const without = leftOut(model, deployment)
  const tools = chatTools(request.tools ?? [], without)
  const { functions, ...choice } = chosenTools(request.tool_choice, tools, without)
  const { reasoning, text, max_output_tokens: limit } = request
  const oneAtATime = request.parallel_tool_calls === false && functions.length > 0 ? false : undefined
  if (text?.verbosity && text.verbosity !== 'medium') without.add('text.verbosity')
  if (request.truncation === 'auto') without.add('truncation')
  const chat = {
    model: request.model,
    messages: messagesFromItems(request, model, without),
    ...(functions.length > 0 ? { tools: functions, ...choice } : {}),
    parallel_tool_calls: without.hint('parallel_tool_calls', 'parallel_tool_calls', oneAtATime),
    reasoning_effort: without.hint('reasoning_effort', 'reasoning.effort', reasoning?.effort),
    response_format: responseFormat(text?.format),
    max_tokens: limit,
    service_tier: request.service_tier,
    stream: request.stream,
    temperature: request.temperature,
    top_p: request.top_p,
  }
  return {
    chat,
    tools: tools.own,
    settings: settingsOf(request),
    sealsReasoning: request.include?.includes(SEALED) ?? false,
    warnings: without.warnings,
  }
}

type TextFormat = NonNullable<ResponsesRequest['text']>['format']

function responseFormat(format: TextFormat): object | undefined {
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return format
  const { name, description, schema, strict } = format
  return {
    type: 'json_schema',
    json_schema: { name, description: description ?? undefined, schema, strict: strict ?? undefined },
  }
}

function settingsOf(request: ResponsesRequest): TranslatedResponses['settings'] {
  const { text, reasoning, tool_choice: choice } = request
  return {
    background: false,
    instructions: null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: null,
    metadata: request.metadata ?? {},
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: null,
    reasoning: { effort: reasoning?.effort ?? null, summary: null },
    service_tier: 'default',
    store: false,
    temperature: request.temperature ?? null,
    text: { format: { type: text?.format?.type ?? 'text' } },
    tool_choice: typeof choice === 'string' ? choice : 'auto',
    tools: [],
    top_logprobs: 0,
    top_p: request.top_p ?? null,
    truncation: 'disabled',
  }
}

/** Nothing is kept between requests, so a request has to contain everything. */
function requireStateless({
  previous_response_id: previous,
  conversation,
  background,
  prompt,
}: ResponsesRequest): void {
  if (previous) {
    throw refused('previous_response_id', 'No response is stored here. Send the whole conversation as input.')
  }
  if (conversation) throw refused('conversation', 'No conversation is stored here. Send all of it as input.')
  if (prompt) throw refused('prompt', 'No prompt is stored here. Send its text as instructions or input.')
  if (background) throw refused('background', 'Responses are not made in the background. Leave it out.')
}

function refused(param: string, advice: string): ApiError {
  return new ApiError('unsupported_parameter', `'${param}' is not supported. ${advice}`, { param })
}
