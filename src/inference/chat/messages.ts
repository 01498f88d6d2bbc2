import type { Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import {
  imageTokens,
  messageTokens,
  sumOf,
  textTokens,
  type TokenEstimate,
} from '../../shared/tokens/token-estimate.ts'
import type { MissingInput, RemoteImage, RequestFacts } from '../request/prepared-request.ts'
import type { ChatMessage, ChatRequest, ImagePart } from './schema.ts'
import { decodedLength, decodedSlice, isBase64 } from '../../shared/base64.ts'
import { imageProblem, readImageHeader, type ImageLimits } from '../../shared/image-header.ts'
import { invalidParameter } from '../../shared/json/schema-check.ts'

const MESSAGE_FIELDS = new Set([
  'role',
  'content',
  'name',
  'tool_calls',
  'tool_call_id',
  'refusal',
  'reasoning_content',
])
/** Each image is an outgoing request. */
const MAX_REMOTE_IMAGES = 16

export interface CheckedMessages {
  readonly input: TokenEstimate
  readonly images: number
  /** The messages to send instead, if the caller's must not reach an engine unchanged. */
  readonly rewritten: readonly ChatMessage[] | undefined
}

/** Checks the rules a schema cannot express and estimates the tokens, in one pass. */
export function checkMessages(
  { messages }: ChatRequest,
  model: Model,
  { images: fetched, imageLimits }: Pick<RequestFacts, 'images' | 'imageLimits'>,
): CheckedMessages | MissingInput {
  const { tokenizer } = model
  const texts: string[] = []
  // Many chat templates leave these out. The context check must not refuse a request that fits without them.
  const labels: string[] = []
  let images = 0
  let rewrite = false
  const remote: RemoteImage[] = []

  for (const [index, message] of messages.entries()) {
    requireRoleFields(message, index)
    if (message.role === 'developer') rewrite = true
    for (const name in message) if (!MESSAGE_FIELDS.has(name)) rewrite = true
    addLabels(message, labels)
    if (typeof message.content === 'string') texts.push(message.content)
    else if (Array.isArray(message.content)) {
      for (const [position, part] of message.content.entries()) {
        if (part.type === 'text') {
          texts.push(part.text)
          if (hasMore(part, 2)) rewrite = true
          continue
        }
        const where = `messages[${index}].content[${position}]`
        requireVision(message, model, where)
        images++
        if (hasMore(part, 2) || isUnusual(part.image_url)) rewrite = true
        const url = urlOf(part)
        if (/^https?:/i.test(url)) remote.push({ url, param: where })
        else requireDataUrl(url, imageLimits, `${where}.image_url.url`)
      }
    }
    for (const call of message.tool_calls ?? []) {
      labels.push(call.id)
      texts.push(call.function.name, call.function.arguments)
      if (hasMore(call, 3) || hasMore(call.function, 2)) rewrite = true
    }
  }
  requireFewRemote(remote)
  if (remote.some(({ url }) => !fetched.has(url))) return { missing: remote }
  const { charged } = tokensOf(labels, tokenizer)
  return {
    input: sumOf([
      messageTokens(messages.length),
      tokensOf(texts, tokenizer),
      { charged, likely: 0 },
      imageTokens(images),
    ]),
    images,
    rewritten: rewrite || remote.length > 0 ? messages.map((it) => plainMessage(it, fetched)) : undefined,
  }
}

function tokensOf(texts: readonly string[], tokenizer: string | undefined): TokenEstimate {
  return sumOf(texts.map((text) => textTokens(text, tokenizer)))
}

function requireFewRemote(remote: readonly RemoteImage[]): void {
  const surplus = remote[MAX_REMOTE_IMAGES]
  if (!surplus) return
  throw new ApiError(
    'unsupported_content',
    `A request may have at most ${MAX_REMOTE_IMAGES} images given by URL. Send the others as data: URLs.`,
    { param: surplus.param },
  )
}

/** The strings of a message besides its role and its content. */
function addLabels({ name, tool_call_id, refusal, reasoning_content }: ChatMessage, labels: string[]): void {
  if (name) labels.push(name)
  if (tool_call_id) labels.push(tool_call_id)
  if (refusal) labels.push(refusal)
  if (reasoning_content) labels.push(reasoning_content)
}

function requireRoleFields(message: ChatMessage, index: number): void {
  const hasContent = message.content !== undefined && message.content !== null
  const callsTools = message.role === 'assistant' && (message.tool_calls?.length ?? 0) > 0
  if (!hasContent && !callsTools) {
    throw missing(`messages[${index}].content`)
  }
  if (message.role === 'tool' && !message.tool_call_id) {
    throw missing(`messages[${index}].tool_call_id`)
  }
}

function missing(param: string): ApiError {
  return new ApiError('missing_required_parameter', `Missing required parameter: '${param}'.`, { param })
}

function requireVision(message: ChatMessage, model: Model, param: string): void {
  if (!model.categories.includes('vision')) {
    throw new ApiError(
      'unsupported_content',
      `${model.id} does not accept images. Use a model of the category vision.`,
      {
        param,
      },
    )
  }
  if (message.role !== 'user') {
    throw new ApiError('unsupported_content', 'Images are only allowed in user messages.', { param })
  }
}

function urlOf(part: ImagePart): string {
  return typeof part.image_url === 'string' ? part.image_url : part.image_url.url
}

/** Whether an object has fields besides the known ones. */
function hasMore(it: object, count: number): boolean {
  return Object.keys(it).length > count
}

/** A bare string, or fields other than url and detail. */
function isUnusual(image: ImagePart['image_url']): boolean {
  return typeof image === 'string' || hasMore(image, image.detail === undefined ? 1 : 2)
}

/** A copy of a message with only the known fields. */
function plainMessage(message: ChatMessage, fetched: RequestFacts['images']): ChatMessage {
  const known = Object.entries(message).filter(([name, value]) => MESSAGE_FIELDS.has(name) && value !== null)
  const plain = Object.fromEntries(known) as ChatMessage
  if (plain.role === 'developer') plain.role = 'system'
  if (Array.isArray(plain.content)) {
    plain.content = plain.content.map((part) => {
      if (part.type === 'text') return { type: 'text', text: part.text }
      const detail = typeof part.image_url === 'string' ? undefined : part.image_url.detail
      const url = fetched.get(urlOf(part)) ?? urlOf(part)
      return { type: 'image_url', image_url: { url, ...(detail ? { detail } : {}) } }
    })
  }
  if (plain.tool_calls) {
    plain.tool_calls = plain.tool_calls.map(({ id, type, function: { name, arguments: text } }) => ({
      id,
      type,
      function: { name, arguments: text },
    }))
  }
  return plain
}

const START = /^data:(image\/(?:png|jpeg|jpg|webp|gif));base64,/

/**
 * Throws unless a data URL holds an image of the type it declares, within the limits. The base64 is checked
 * in one pass, and only the image header is decoded.
 */
function requireDataUrl(url: string, limits: ImageLimits, param: string): void {
  const [start, declared] = START.exec(url) ?? []
  if (start === undefined) {
    throw invalidParameter('invalid_value', param, 'a data: URL with a png, jpeg, webp or gif in base64')
  }
  const base64 = url.slice(start.length)
  const length = decodedLength(base64)
  const read = (offset: number, count: number): Buffer => decodedSlice(base64, offset, count)
  const problem = length === undefined ? 'padded base64 after the comma' : imageProblem(read, length, limits)
  if (problem !== undefined) throw invalidParameter('invalid_value', param, problem)
  const type = readImageHeader(read)?.type
  if (type !== declared?.replace('jpg', 'jpeg')) {
    throw invalidParameter('invalid_value', param, `an ${declared} as its media type says, but the content is ${type}`)
  }
  if (!isBase64(base64)) throw invalidParameter('invalid_value', param, 'valid base64 after the comma')
}
