import { eventPattern, type EventPattern } from './event-pattern.ts'

/**
 * The events of a stream that has one choice, which are relayed like one before them without being parsed: all but the
 * first and the last few, for most engines.
 */
export interface UsualEvents {
  /**
   * What is sent for an event; undefined if it has to be parsed, because it is not like an earlier one or because `take`
   * refuses its text.
   */
  relayed(data: string, take: (text: string) => boolean): string | undefined
  /** The next events will be like this one, of which the part from `start` to `end` was forwarded for its text. */
  learn(data: string, text: string | undefined, start: number, end: number): void
}

/** An engine whose events are never alike is not asked for a pattern again and again. */
const MAX_LESSONS = 8

interface Learned {
  readonly pattern: EventPattern
  /** What is sent before and after the text. */
  readonly before: string
  readonly after: string
}

/** `head` and `tail`: what is sent around everything that is forwarded. */
export function usualEventsOf(textField: string, head: string, tail: string): UsualEvents {
  let learned: Learned | undefined
  let lessons = 0
  return {
    relayed(data, take) {
      const text = learned?.pattern.textIn(data)
      return learned && text !== undefined && take(text) ? learned.before + text + learned.after : undefined
    },
    learn(data, text, start, end) {
      if (lessons >= MAX_LESSONS || !text) return
      lessons++
      const pattern = eventPattern(data, textField, text)
      if (!pattern || pattern.start < start || pattern.start + text.length > end) return
      const before = head + data.slice(start, pattern.start)
      learned = { pattern, before, after: data.slice(pattern.start + text.length, end) + tail }
    },
  }
}
