import type { Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import type { LeftOut } from '../chat/left-out.ts'
import { BETWEEN_TEXTS, conversation, textPart, type Part } from '../chat/conversation.ts'
import type { ChatMessage } from '../chat/schema.ts'
import { readReasoning } from './items.ts'
import type { ResponsesItem, ResponsesPart, ResponsesRequest } from './schema.ts'
import { customArguments, wireName } from './tools.ts'

type Call = NonNullable<ChatMessage['tool_calls']>[number]

/**
 * The messages of a chat, converted from the items of /responses. A model's output in one turn becomes one message
 * again.
 */
export function messagesFromItems(
  { instructions, input }: Pick<ResponsesRequest, 'instructions' | 'input'>,
  model: Model,
  without: LeftOut,
): ChatMessage[] {
  const chat = conversation(model)
  let turn: AssistantTurn | undefined

  function endTurn(): void {
    if (turn) chat.assistant(turn.message())
    turn = undefined
  }

  function assistant(): AssistantTurn {
    return (turn ??= assistantTurn())
  }

  function takeMessage(item: ResponsesItem, param: string): void {
    const content = item.content ?? ''
    if (item.role === 'assistant') {
      if (turn?.endsWithText()) endTurn()
      return assistant().addText(textOf(content, param))
    }
    endTurn()
    if (item.role === 'system' || item.role === 'developer') chat.system(textOf(content, param))
    else chat.user(partsOf(content, `${param}.content`))
  }

  function takeResult({ call_id: id, output }: ResponsesItem, param: string): void {
    if (!id) throw missing(`${param}.call_id`)
    endTurn()
    chat.result(id, partsOf(output ?? '', `${param}.output`))
  }

  function take(item: ResponsesItem, param: string): void {
    switch (item.type ?? 'message') {
      case 'message':
        return takeMessage(item, param)
      case 'reasoning':
        return assistant().think(readReasoning(item))
      case 'function_call':
        return assistant().call(callOf(item, item.arguments ?? '', param))
      case 'custom_tool_call':
        return assistant().call(callOf(item, customArguments(item.input ?? ''), param))
      case 'function_call_output':
      case 'custom_tool_call_output':
        return takeResult(item, param)
      case 'item_reference':
        throw new ApiError(
          'unsupported_value',
          `'${param}' refers to a stored item, and nothing is stored here. Send the item itself.`,
          { param: `${param}.type` },
        )
      default:
        return without.add(`input item of the type ${item.type}`)
    }
  }

  if (instructions) chat.system(instructions)
  if (typeof input === 'string') chat.user([textPart(input)])
  else {
    for (const [index, item] of input.entries()) take(item, `input[${index}]`)
  }
  endTurn()
  return chat.messages()
}

interface AssistantTurn {
  addText(text: string): void
  think(text: string): void
  call(call: Call): void
  /** The last item was text. */
  endsWithText(): boolean
  message(): ChatMessage
}

function assistantTurn(): AssistantTurn {
  const texts: string[] = []
  const thoughts: string[] = []
  const calls: Call[] = []
  return {
    addText: (text) => void texts.push(text),
    think: (text) => void (text !== '' && thoughts.push(text)),
    call: (call) => void calls.push(call),
    endsWithText: () => texts.length > 0 && calls.length === 0,
    message: () => ({
      role: 'assistant',
      content: texts.join(BETWEEN_TEXTS),
      ...(thoughts.length > 0 ? { reasoning_content: thoughts.join(BETWEEN_TEXTS) } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    }),
  }
}

function callOf({ call_id: id, name, namespace }: ResponsesItem, text: string, param: string): Call {
  if (!id) throw missing(`${param}.call_id`)
  if (!name) throw missing(`${param}.name`)
  return { id, type: 'function', function: { name: wireName(name, namespace), arguments: text } }
}

function partsOf(content: string | readonly ResponsesPart[], param: string): readonly Part[] {
  return typeof content === 'string' ? [textPart(content)] : content.map((it, at) => partOf(it, `${param}[${at}]`))
}

function partOf({ type, text, image_url: url, detail }: ResponsesPart, param: string): Part {
  if (type === 'input_text' || type === 'output_text' || type === 'text') return textPart(text ?? '')
  if (type === 'input_image' && url) {
    return { type: 'image_url', image_url: { url, ...(detail && detail !== 'auto' ? { detail } : {}) } }
  }
  const advice = type === 'input_image' ? 'Send the image as image_url.' : 'Send input_text or input_image.'
  throw new ApiError('unsupported_content', `'${param}' cannot be read. ${advice}`, { param: `${param}.type` })
}

/** The text of parts that contain nothing else. */
function textOf(content: string | readonly ResponsesPart[], param: string): string {
  if (typeof content === 'string') return content
  const texts = content.map(({ type, text, refusal }, at) => {
    if (type === 'refusal') return refusal ?? ''
    if (type.endsWith('text')) return text ?? ''
    throw new ApiError('unsupported_content', `Only text is allowed in '${param}'.`, {
      param: `${param}.content[${at}].type`,
    })
  })
  return texts.join(BETWEEN_TEXTS)
}

function missing(param: string): ApiError {
  return new ApiError('missing_required_parameter', `Missing required parameter: '${param}'.`, { param })
}
