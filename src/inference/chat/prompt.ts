import type { Deployment } from '../../catalog/model.ts'
import { HEADROOM, type JsonBody } from '../../shared/json/json-body.ts'
import {
  MIN_PROMPT_CHARACTERS,
  promptHasher,
  type PromptBlocks,
  type PromptHasher,
} from '../../engines/prefix/prompt-blocks.ts'
import { addField, isPromptNeeded } from '../request/prompt-text.ts'
import type { ChatMessage, ChatRequest } from './schema.ts'

/**
 * The prompt of a chat in the order in which templates render it: tools, then the messages. undefined: it is too short
 * to matter, or all addresses of the engine are equivalent for it.
 */
export function chatPrompt(body: JsonBody, deployment: Deployment): PromptBlocks | undefined {
  if (!isPromptNeeded(deployment) || body.bytes.length - HEADROOM < MIN_PROMPT_CHARACTERS) return undefined
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

function addContent(hasher: PromptHasher, { content }: ChatMessage): void {
  if (typeof content === 'string') return hasher.text(content)
  for (const part of content ?? []) {
    if (part.type === 'text') hasher.text(part.text)
    else hasher.image(typeof part.image_url === 'string' ? part.image_url : part.image_url.url)
  }
}
