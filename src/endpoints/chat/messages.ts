import type { Model } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import type { ImageLimits } from '../../core/image-header.ts'
import { resultOf, type WaitingWork } from '../../core/sliced-work.ts'
import { imageTokens, messageTokens, sumOf, type TokenEstimate } from '../../core/token-estimate.ts'
import { tokensIn } from '../text-in-slices.ts'
import type { ChatMessage, ChatRequest, ImagePart } from './schema.ts'
import { requireDataUrl } from './data-url.ts'

const MESSAGE_FIELDS = new Set([
  'role',
  'content',
  'name',
  'tool_calls',
  'tool_call_id',
  'refusal',
  'reasoning_content',
])
const NONE_INLINED: ReadonlyMap<ImagePart, string> = new Map()
/** Each one is an outgoing request. */
const MAX_REMOTE_IMAGES = 16

export interface CheckedMessages {
  readonly input: TokenEstimate
  readonly images: number
  /** The messages to send instead, when the caller's must not reach an engine unchanged. */
  readonly rewritten: readonly ChatMessage[] | undefined
}

/** Fetches images from hosts that the operator allows, and returns data URLs in the same order. */
type FetchImages = (images: readonly { readonly url: string; readonly param: string }[]) => Promise<string[]>

/** The limits on images, and how to fetch the ones that are given by URL. */
export interface ImageParts {
  readonly fetchImages: FetchImages
  readonly imageLimits: ImageLimits
}

/** Checks the rules a schema cannot express and estimates the tokens, in one pass. */
export function* checkMessages(
  { messages }: ChatRequest,
  model: Model,
  parts: ImageParts,
): WaitingWork<CheckedMessages> {
  const { tokenizer } = model
  const texts: TokenEstimate[] = []
  // Many chat templates leave these out. The context check must not refuse a request that fits without them.
  const labels: TokenEstimate[] = []
  let images = 0
  let rewrite = false
  const remote: { part: ImagePart; url: string; param: string }[] = []

  for (const [index, message] of messages.entries()) {
    const param = `messages[${index}]`
    requireRoleFields(message, param)
    if (message.role === 'developer') rewrite = true
    for (const name in message) {
      const value = message[name as keyof ChatMessage]
      if (!MESSAGE_FIELDS.has(name)) rewrite = true
      else if (typeof value === 'string' && name !== 'role' && name !== 'content')
        labels.push(yield* tokensIn(value, tokenizer))
    }
    if (typeof message.content === 'string') texts.push(yield* tokensIn(message.content, tokenizer))
    else if (Array.isArray(message.content)) {
      for (const [position, part] of message.content.entries()) {
        if (part.type === 'text') {
          texts.push(yield* tokensIn(part.text, tokenizer))
          if (hasMore(part, 2)) rewrite = true
          continue
        }
        const where = `${param}.content[${position}]`
        requireVision(message, model, where)
        images++
        if (hasMore(part, 2) || isUnusual(part.image_url)) rewrite = true
        const url = urlOf(part)
        if (/^https?:/i.test(url)) remote.push({ part, url, param: where })
        else requireDataUrl(url, parts.imageLimits, `${where}.image_url.url`)
      }
    }
    for (const call of message.tool_calls ?? []) {
      labels.push(yield* tokensIn(call.id, tokenizer))
      texts.push(yield* tokensIn(call.function.name, tokenizer))
      texts.push(yield* tokensIn(call.function.arguments, tokenizer))
      if (hasMore(call, 3) || hasMore(call.function, 2)) rewrite = true
    }
    yield
  }
  const inlined = remote.length === 0 ? NONE_INLINED : yield* resultOf(inline(remote, parts.fetchImages))
  return {
    input: sumOf([
      messageTokens(messages.length),
      ...texts,
      { charged: sumOf(labels).charged, likely: 0 },
      imageTokens(images),
    ]),
    images,
    rewritten: rewrite || inlined.size > 0 ? messages.map((it) => plainMessage(it, inlined)) : undefined,
  }
}

async function inline(
  remote: readonly { readonly part: ImagePart; readonly url: string; readonly param: string }[],
  fetchImages: FetchImages,
): Promise<ReadonlyMap<ImagePart, string>> {
  const surplus = remote[MAX_REMOTE_IMAGES]
  if (surplus) {
    throw new ApiError(
      'unsupported_content',
      `A request may have at most ${MAX_REMOTE_IMAGES} images given by URL. Send the others as data: URLs.`,
      {
        param: surplus.param,
      },
    )
  }
  const dataUrls = await fetchImages(remote)
  return new Map(remote.map(({ part }, index) => [part, dataUrls[index] ?? '']))
}

function requireRoleFields(message: ChatMessage, param: string): void {
  const hasContent = message.content !== undefined && message.content !== null
  const callsTools = message.role === 'assistant' && (message.tool_calls?.length ?? 0) > 0
  if (!hasContent && !callsTools) {
    throw new ApiError('missing_required_parameter', `Missing required parameter: '${param}.content'.`, {
      param: `${param}.content`,
    })
  }
  if (message.role === 'tool' && !message.tool_call_id) {
    throw new ApiError('missing_required_parameter', `Missing required parameter: '${param}.tool_call_id'.`, {
      param: `${param}.tool_call_id`,
    })
  }
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

/** A copy of a message with only the fields we know. */
function plainMessage(message: ChatMessage, inlined: ReadonlyMap<ImagePart, string>): ChatMessage {
  const known = Object.entries(message).filter(([name, value]) => MESSAGE_FIELDS.has(name) && value !== null)
  const plain = Object.fromEntries(known) as ChatMessage
  if (plain.role === 'developer') plain.role = 'system'
  if (Array.isArray(plain.content)) {
    plain.content = plain.content.map((part) => {
      if (part.type === 'text') return { type: 'text', text: part.text }
      const detail = typeof part.image_url === 'string' ? undefined : part.image_url.detail
      const url = inlined.get(part) ?? urlOf(part)
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
