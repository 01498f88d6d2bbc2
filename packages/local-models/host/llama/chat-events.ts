import type { TextEvent } from '../runtime/engine-model.ts'
import type { ModelAnswerPart, AnswerParts } from './answer-parts.ts'
import { parseToolCall } from './tool-calls.ts'

/** Turns the JSON of a forced tool call into one event. */
export async function* forcedCall(events: AsyncIterable<TextEvent>): AsyncGenerator<TextEvent> {
  let json = ''
  for await (const event of events) {
    if (event.kind === 'text') json += event.text
    else if (event.kind !== 'end') yield event
    else {
      const { completionTokens } = event
      const call = parseToolCall(json)
      if (call) yield { kind: 'tool_call', index: 0, ...call, completionTokens }
      // Without a call, max_tokens cut it off: the caller sees `length`.
      yield call ? { kind: 'end', finishReason: 'tool_calls', completionTokens } : event
    }
  }
}

/** Splits the text of an answer into text, reasoning and tool calls. The answer ends with its last allowed call. */
export async function* splitAnswer(
  events: AsyncIterable<TextEvent>,
  parts: AnswerParts,
  maxCalls: number,
): AsyncGenerator<TextEvent> {
  let calls = 0
  const eventOf = (part: ModelAnswerPart, completionTokens: number): TextEvent => {
    if (part.kind !== 'tool_call') return { ...part, completionTokens }
    return { kind: 'tool_call', index: calls++, ...part.call, completionTokens }
  }
  for await (const event of events) {
    if (event.kind === 'text') {
      const logprobs = event.logprobs ? { logprobs: event.logprobs } : {}
      for (const part of parts.push(event.text)) {
        yield { ...eventOf(part, event.completionTokens), ...logprobs }
        if (calls < maxCalls) continue
        yield { kind: 'end', finishReason: 'tool_calls', completionTokens: event.completionTokens }
        return
      }
    } else if (event.kind === 'end') {
      for (const part of parts.flush()) yield eventOf(part, event.completionTokens)
      yield calls > 0 ? { ...event, finishReason: 'tool_calls' } : event
    } else yield event
  }
}
