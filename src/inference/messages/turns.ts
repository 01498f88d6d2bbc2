import type { Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import {
  BETWEEN_TEXTS,
  conversation,
  joinedText,
  textPart,
  type Conversation,
  type Part,
} from '../chat/conversation.ts'
import type { ChatMessage } from '../chat/schema.ts'
import { chatToolName } from '../chat/tool-names.ts'
import type { MessageBlock, MessagesRequest, ResultBlock } from './schema.ts'
import { readThinking } from './thinking.ts'

type Block = MessageBlock | ResultBlock

/** The messages of a chat, converted from the turns of /messages. */
export function messagesFromTurns(
  { system, messages }: Pick<MessagesRequest, 'system' | 'messages'>,
  model: Model,
): ChatMessage[] {
  const chat = conversation(model)
  const instructions = system ? textOf(system, 'system') : ''
  if (instructions !== '') chat.system(instructions)
  for (const [index, { role, content }] of messages.entries()) {
    const param = `messages[${index}]`
    if (role === 'assistant') chat.assistant(assistantMessage(content, param))
    else if (role === 'system') chat.system(textOf(content, param))
    else if (typeof content === 'string') chat.user([textPart(content)])
    else takeUser(chat, content, param)
  }
  return chat.messages()
}

function assistantMessage(content: string | readonly MessageBlock[], param: string): ChatMessage {
  if (typeof content === 'string') return { role: 'assistant', content }
  const texts: string[] = []
  const thoughts: string[] = []
  const calls: NonNullable<ChatMessage['tool_calls']> = []
  for (const [index, block] of content.entries()) {
    if (block.type === 'text') texts.push(block.text ?? '')
    else if (block.type === 'thinking') thoughts.push(readThinking(block))
    else if (block.type === 'tool_use') {
      const { id, name, input } = block
      if (!id) throw missing(`${param}.content[${index}].id`)
      if (!name) throw missing(`${param}.content[${index}].name`)
      const text = JSON.stringify(input ?? {})
      calls.push({ id, type: 'function', function: { name: chatToolName(name), arguments: text } })
    }
  }
  const reasoning = thoughts.filter(Boolean).join(BETWEEN_TEXTS)
  return {
    role: 'assistant',
    content: texts.join(BETWEEN_TEXTS),
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
}

/** The results of tools first, then the user's content. */
function takeUser(chat: Conversation, blocks: readonly MessageBlock[], param: string): void {
  const parts: Part[] = []
  for (const [index, block] of blocks.entries()) {
    const where = `${param}.content[${index}]`
    if (block.type !== 'tool_result') {
      parts.push(partOf(block, where))
      continue
    }
    const { tool_use_id: id } = block
    const content = block.content ?? ''
    if (!id) throw missing(`${where}.tool_use_id`)
    chat.result(
      id,
      typeof content === 'string'
        ? [textPart(content)]
        : content.map((it, at) => partOf(it, `${where}.content[${at}]`)),
    )
  }
  chat.user(parts)
}

function partOf(block: Block, param: string): Part {
  switch (block.type) {
    case 'text':
      return textPart(block.text ?? '')
    case 'image':
      return { type: 'image_url', image_url: { url: imageUrl(block, param) } }
    case 'document':
      return textPart(documentText(block, param))
    default:
      throw new ApiError(
        'unsupported_content',
        `'${param}' is of the type ${block.type.slice(0, 64)}, which is not supported here. Send text, image, document or tool_result.`,
        { param: `${param}.type` },
      )
  }
}

function imageUrl({ source }: Block, param: string): string {
  if (source?.type === 'url' && source.url) return source.url
  if (source?.type === 'base64' && source.media_type && source.data) {
    return `data:${source.media_type};base64,${source.data}`
  }
  throw new ApiError('unsupported_content', `Send the image in '${param}' as base64 or by URL.`, {
    param: `${param}.source`,
  })
}

/** Documents in plain text. Models read no other kind. */
function documentText({ source }: Block, param: string): string {
  if (source?.type === 'text' && typeof source.data === 'string') return source.data
  if (source?.type === 'content' && source.content) {
    const { content } = source
    return typeof content === 'string' ? content : joinedText(content.map((it) => partOf(it as Block, param)))
  }
  throw new ApiError('unsupported_content', `The document in '${param}' is not plain text. Send its text instead.`, {
    param: `${param}.source`,
  })
}

/** The text of blocks that may contain nothing else. */
function textOf(content: string | readonly MessageBlock[], param: string): string {
  if (typeof content === 'string') return content
  const other = content.findIndex(({ type }) => type !== 'text')
  if (other < 0) return content.map(({ text }) => text ?? '').join(BETWEEN_TEXTS)
  throw new ApiError('unsupported_content', `Only text is allowed in '${param}'.`, { param: `${param}[${other}].type` })
}

function missing(param: string): ApiError {
  return new ApiError('missing_required_parameter', `Missing required parameter: '${param}'.`, { param })
}
