import type { Deployment } from '../../core/catalog.ts'
import { HEADROOM, type JsonBody } from '../../core/json/json-body.ts'
import { MIN_PROMPT_CHARACTERS, promptHasher, type PromptBlocks } from '../../core/prefix/prompt-blocks.ts'
import type { SlicedWork } from '../../core/sliced-work.ts'
import { addField, addImage, addText, isPromptWanted, SLICE_CHARACTERS } from '../prompt-text.ts'
import type { ChatMessage, ChatRequest } from './schema.ts'

/**
 * The prompt of a chat in the order in which templates render it: tools, then the messages. undefined: it is too short to
 * matter, or all addresses of the engine are the same to it.
 */
export function* chatPrompt(body: JsonBody, deployment: Deployment): SlicedWork<PromptBlocks | undefined> {
  if (!isPromptWanted(deployment) || body.bytes.length - HEADROOM < MIN_PROMPT_CHARACTERS) return undefined
  const { messages } = body.value as unknown as ChatRequest
  const hasher = promptHasher()
  yield* addField(hasher, body, 'tools')
  for (const message of messages) {
    hasher.beginMessage(message.role === 'assistant')
    hasher.text(message.role)
    if (message.reasoning_content) yield* addText(hasher, message.reasoning_content)
    // A generator would cost as much as the hash of a usual message.
    if (typeof message.content === 'string' && message.content.length <= SLICE_CHARACTERS) hasher.text(message.content)
    else yield* addContent(message)
    for (const { function: called } of message.tool_calls ?? []) {
      yield* addText(hasher, called.name)
      yield* addText(hasher, called.arguments)
    }
    hasher.endMessage()
    yield
  }
  const prompt = hasher.result()
  return prompt.characters < MIN_PROMPT_CHARACTERS ? undefined : prompt

  function* addContent({ content }: ChatMessage): SlicedWork<void> {
    if (typeof content === 'string') return yield* addText(hasher, content)
    for (const part of content ?? []) {
      if (part.type === 'text') yield* addText(hasher, part.text)
      else yield* addImage(hasher, typeof part.image_url === 'string' ? part.image_url : part.image_url.url)
    }
    return undefined
  }
}
