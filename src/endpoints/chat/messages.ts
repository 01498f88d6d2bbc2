import type { Model } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import type { ImageLimits } from '../../core/image-header.ts'
import { imageTokens, messageTokens, sumOf, textTokens, type TokenEstimate } from '../../core/token-estimate.ts'
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
/** Each is a request of ours to somebody else. */
const MAX_REMOTE_IMAGES = 16

export interface ReadMessages {
  readonly input: TokenEstimate
  /** Written anew where an engine must not get them as they came; else undefined. */
  readonly rewritten: readonly ChatMessage[] | undefined
}

/** Gets images at addresses that the operator allows, as data URLs in the same order. */
export type FetchImages = (images: readonly { readonly url: string; readonly param: string }[]) => Promise<string[]>

/** What the images of a request may be, and how those that are elsewhere get here. */
export interface ImageParts {
  readonly fetchImages: FetchImages
  readonly imageLimits: ImageLimits
}

/** Checks what a schema cannot say of messages, and measures them: one walk. */
export async function readMessages(request: ChatRequest, model: Model, parts: ImageParts): Promise<ReadMessages> {
  const estimates: TokenEstimate[] = [messageTokens(request.messages.length)]
  const addText = (text: string): void => void estimates.push(textTokens(text, model.tokenizer))
  let rewrite = false
  const remote: { part: ImagePart; url: string; param: string }[] = []

  request.messages.forEach((message, index) => {
    const param = `messages[${index}]`
    requireRole(message, param)
    if (message.role === 'developer' || hasUnknownFields(message)) rewrite = true
    if (typeof message.content === 'string') addText(message.content)
    else if (Array.isArray(message.content)) {
      message.content.forEach((part, position) => {
        if (part.type === 'text') {
          addText(part.text)
          if (hasMore(part, 2)) rewrite = true
          return
        }
        const where = `${param}.content[${position}]`
        requireVision(message, model, where)
        estimates.push(imageTokens(1))
        if (hasMore(part, 2) || isUnusual(part.image_url)) rewrite = true
        const url = urlOf(part)
        if (/^https?:/i.test(url)) remote.push({ part, url, param: where })
        else requireDataUrl(url, parts.imageLimits, `${where}.image_url.url`)
      })
    }
    for (const call of message.tool_calls ?? []) {
      addText(call.function.name)
      addText(call.function.arguments)
      if (hasMore(call, 3) || hasMore(call.function, 2)) rewrite = true
    }
  })
  // Tool definitions and schemas are part of the prompt, and are text themselves.
  for (const field of [request.tools, request.response_format]) {
    if (field) addText(JSON.stringify(field))
  }
  const inlined = await inline(remote, parts.fetchImages)
  return {
    input: sumOf(estimates),
    rewritten: rewrite || inlined.size > 0 ? request.messages.map((it) => plainMessage(it, inlined)) : undefined,
  }
}

async function inline(
  remote: readonly { readonly part: ImagePart; readonly url: string; readonly param: string }[],
  fetchImages: FetchImages,
): Promise<ReadonlyMap<ImagePart, string>> {
  if (remote.length === 0) return new Map()
  const surplus = remote[MAX_REMOTE_IMAGES]
  if (surplus) {
    throw new ApiError('unsupported_content', `At most ${MAX_REMOTE_IMAGES} images of a request are fetched.`, {
      param: surplus.param,
    })
  }
  const dataUrls = await fetchImages(remote)
  return new Map(remote.map(({ part }, index) => [part, dataUrls[index] ?? '']))
}

function requireRole(message: ChatMessage, param: string): void {
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
      `${model.id} does not take images; choose a model of the category vision.`,
      {
        param,
      },
    )
  }
  if (message.role !== 'user') {
    throw new ApiError('unsupported_content', 'Images belong into messages of the role user.', { param })
  }
}

function urlOf(part: ImagePart): string {
  return typeof part.image_url === 'string' ? part.image_url : part.image_url.url
}

function hasUnknownFields(message: object): boolean {
  for (const name in message) if (!MESSAGE_FIELDS.has(name)) return true
  return false
}

/** Fields beyond those that are known to be there. */
function hasMore(it: object, count: number): boolean {
  return Object.keys(it).length > count
}

/** A bare string, or fields beside the url and its detail. */
function isUnusual(image: ImagePart['image_url']): boolean {
  return typeof image === 'string' || hasMore(image, image.detail === undefined ? 1 : 2)
}

/** A message with the fields we know and nothing else. */
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
