import type { Deployment } from '../../catalog/model.ts'
import { HEADROOM, type JsonBody } from '../../shared/json/json-body.ts'
import {
  MIN_PROMPT_CHARACTERS,
  promptHasher,
  type PromptBlocks,
  type PromptHasher,
} from '../../engines/prefix/prompt-blocks.ts'
import type { ChatMessage, ChatRequest } from './schema.ts'

/**
 * The prompt of a chat in the order in which templates render it: tools, then the messages. undefined: it is too short
 * to matter, or all addresses of the engine are equivalent for it.
 */
export function chatPrompt(body: JsonBody, deployment: Deployment): PromptBlocks | undefined {
  const isByPrefix = deployment.engine?.balance === 'prefix'
  if (!isByPrefix || body.bytes.length - HEADROOM < MIN_PROMPT_CHARACTERS) return undefined
  const { messages } = body.value as unknown as ChatRequest
  const hasher = promptHasher()
  addField(hasher, body, 'tools')
  for (const message of messages) {
    hasher.beginMessage(message.role === 'assistant')
    hasher.text(message.role)
    if (message.reasoning_content) hasher.text(message.reasoning_content)
    addContent(hasher, message)
    for (const { function: called } of message.tool_calls ?? []) {
      hasher.text(called.name)
      hasher.text(called.arguments)
    }
    hasher.endMessage()
  }
  const prompt = hasher.result()
  return prompt.characters < MIN_PROMPT_CHARACTERS ? undefined : prompt
}

/** Adds a field of a body as it was sent, without parsing it again. */
function addField(hasher: PromptHasher, { bytes, scan }: JsonBody, name: string): void {
  const field = scan.fields.find((it) => it.name === name)
  if (field) hasher.text(bytes.toString('latin1', field.valueStart, field.end))
}

function addContent(hasher: PromptHasher, { content }: ChatMessage): void {
  if (typeof content === 'string') return hasher.text(content)
  for (const part of content ?? []) {
    if (part.type === 'text') hasher.text(part.text)
    else hasher.image(typeof part.image_url === 'string' ? part.image_url : part.image_url.url)
  }
}

/**
 * Moves lines of the system message that change from request to request, such as a date or a checksum, behind
 * everything that stays the same: to the end of the last message. An engine finds a prompt in its cache only up to the
 * first byte that differs. undefined if there is nothing to move.
 */
export function withoutChangingLines(
  messages: readonly ChatMessage[],
  starts: readonly string[],
): readonly ChatMessage[] | undefined {
  const [system, ...others] = messages
  const last = others.at(-1)
  const isSystem = system?.role === 'system' || system?.role === 'developer'
  if (starts.length === 0 || !isSystem || !last || (last.role !== 'user' && last.role !== 'tool')) return undefined
  const moved: string[] = []

  const stable = (text: string): string => starts.reduce((left, start) => withoutLines(left, start, moved), text)
  const content = eachText(system.content ?? '', stable)
  if (moved.length === 0) return undefined
  const text = moved.join('\n')
  return [{ ...system, content }, ...others.slice(0, -1), { ...last, content: withText(last.content ?? '', text) }]
}

type Content = NonNullable<ChatMessage['content']>

function eachText(content: Content, change: (text: string) => string): Content {
  if (typeof content === 'string') return change(content)
  return content.map((part) => (part.type === 'text' ? { ...part, text: change(part.text) } : part))
}

/** The text without the lines that start like this. Those are added to `moved`. */
function withoutLines(text: string, start: string, moved: string[]): string {
  const kept: string[] = []
  let from = 0
  for (let at = text.indexOf(start); at >= 0; at = text.indexOf(start, at + 1)) {
    if (at < from || (at > 0 && text[at - 1] !== '\n')) continue
    const feed = text.indexOf('\n', at)
    const end = feed < 0 ? text.length : feed
    moved.push(text.slice(at, end))
    kept.push(text.slice(from, at))
    from = Math.min(text.length, end + 1)
  }
  return from === 0 ? text : kept.join('') + text.slice(from)
}

function withText(content: Content, text: string): Content {
  if (Array.isArray(content)) return [...content, { type: 'text', text }]
  return content ? `${content}\n\n${text}` : text
}
