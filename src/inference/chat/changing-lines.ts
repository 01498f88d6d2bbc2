import type { ChatMessage } from './schema.ts'

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
