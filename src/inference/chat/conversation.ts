import type { Model } from '../../catalog/model.ts'
import type { ChatMessage } from './schema.ts'

/** Converts the turns of another API to messages that every chat template accepts. */
export interface Conversation {
  /** At the start, it becomes part of the only system message. Later, it is added to a user message. */
  system(text: string): void
  user(parts: readonly Part[]): void
  assistant(message: ChatMessage): void
  /** The result of a tool. A chat allows images only in user messages, so they follow the results. */
  result(callId: string, parts: readonly Part[]): void
  messages(): ChatMessage[]
}

export type Part = Exclude<NonNullable<ChatMessage['content']>, string>[number]

export const BETWEEN_TEXTS = '\n\n'

/**
 * Templates differ in what they refuse: a second system message, a system message after others, two user messages in a
 * row. Nothing is reordered, so a longer conversation starts like a shorter one, and engines find its start in their
 * caches.
 */
export function conversation(model: Model): Conversation {
  const messages: ChatMessage[] = []
  const leading: string[] = []
  /** The user's content since the last message with another role. */
  let parts: Part[] = []
  const canSee = model.categories.includes('vision')

  function endUser(): void {
    if (parts.length > 0) messages.push({ role: 'user', content: contentOf(parts) })
    parts = []
  }

  return {
    system(text) {
      if (messages.length === 0 && parts.length === 0) leading.push(text)
      else parts.push(textPart(`<system-reminder>\n${text}\n</system-reminder>`))
    },
    user: (more) => void parts.push(...more),
    assistant(message) {
      endUser()
      messages.push(message)
    },
    result(callId, given) {
      const images = given.filter((part) => part.type === 'image_url')
      const note = images.length > 0 && !canSee ? `[${model.id} does not accept images, so they were left out.]` : ''
      const text = [joinedText(given), note].filter(Boolean).join(BETWEEN_TEXTS)
      // Several results in a row stay together.
      if (messages.at(-1)?.role !== 'tool') endUser()
      messages.push({ role: 'tool', tool_call_id: callId, content: text })
      if (canSee) parts.push(...images)
    },
    messages() {
      endUser()
      return leading.length > 0 ? [{ role: 'system', content: leading.join(BETWEEN_TEXTS) }, ...messages] : messages
    },
  }
}

export function textPart(text: string): Part {
  return { type: 'text', text }
}

export function joinedText(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(BETWEEN_TEXTS)
}

/** Plain text if there is nothing else. Not every template accepts a list. */
function contentOf(parts: Part[]): string | Part[] {
  return parts.every((part) => part.type === 'text') ? joinedText(parts) : parts
}
