import type { Job } from '../../engines/job.ts'
import { asList, asRecord, type JsonRecord } from '../../engines/dialects/reading.ts'
import { generationAnswer, type AnswerFormat } from '../generation/generation-answer.ts'
import { chatLogprobs } from '../generation/generation-logprobs.ts'
import type { GenerationOptions } from '../generation/generation-options.ts'
import { joinedStream } from '../generation/joined-stream.ts'
import { endingOf, type AnswerMessage, type ChatForm } from './form.ts'
import { chatStream } from './stream.ts'
import { cutToolCalls, toolCallText, wholeToolCalls } from './tool-calls.ts'

const format: AnswerFormat<{ readonly message: AnswerMessage }> = {
  idPrefix: 'chatcmpl-',
  object: 'chat.completion',
  content: ({ message }, id) => ({ message: toMessage(asRecord(message), (call) => `call_${id}_${call}`) }),
  logprobs: ({ logprobs }) => chatLogprobs(logprobs),
  outputOf: ({ message: { reasoning_content: reasoning, content, refusal, tool_calls: calls } }) =>
    [reasoning, content, refusal, ...(calls ?? []).map(toolCallText)].filter(Boolean).join('\n'),
  cut({ message }, keep) {
    // In the order in which a model writes them.
    const reasoning = keep(message.reasoning_content ?? '')
    const content = keep(message.content ?? '')
    const refusal = keep(message.refusal ?? '')
    const calls = cutToolCalls(message.tool_calls ?? [], keep)
    return {
      message: {
        role: message.role,
        content: message.content === null ? null : content,
        refusal: message.refusal === null ? null : refusal,
        reasoning_content: reasoning === '' ? undefined : reasoning,
        tool_calls: calls.length === 0 ? undefined : calls,
      },
    }
  },
  choice: ({ index, content, logprobs, finish_reason }) => ({
    index,
    message: content.message,
    logprobs,
    finish_reason,
  }),
}

/** A separate function, so that the closures do not retain the request body. */
export function chatAnswer(isStream: boolean, options: GenerationOptions): Job['answer'] {
  if (isStream) return { kind: 'streamed', relay: (head) => joinedStream(options, (part) => chatStream(head, part)) }
  return { kind: 'whole', read: async (bodies, head) => generationAnswer(bodies, head, options, format) }
}

/** The same in the form of another API, which has one choice. */
export function translatedAnswer(
  isStream: boolean,
  options: GenerationOptions,
  form: ChatForm,
  likelyInputTokens: number,
): Job['answer'] {
  if (isStream) {
    return {
      kind: 'streamed',
      relay: (head) => joinedStream(options, (part) => chatStream(head, part, form.stream(head, likelyInputTokens))),
    }
  }
  const translated: typeof format = {
    ...format,
    render: (head, [choice], usage) =>
      form.whole(head, {
        message: choice.content.message,
        ending: endingOf(choice.raw, choice.finish_reason ?? ''),
        usage,
      }),
  }
  return { kind: 'whole', read: async (bodies, head) => generationAnswer(bodies, head, options, translated) }
}

function toMessage(message: JsonRecord, callId: (index: number) => string): AnswerMessage {
  const { content, refusal } = message
  const toolCalls = asList(message['tool_calls']) ?? []
  const reasoning = message['reasoning_content'] ?? message['reasoning']
  return {
    role: 'assistant',
    content: typeof content === 'string' ? content : null,
    refusal: typeof refusal === 'string' ? refusal : null,
    reasoning_content: typeof reasoning === 'string' && reasoning !== '' ? reasoning : undefined,
    tool_calls: toolCalls.length > 0 ? wholeToolCalls(toolCalls, callId) : undefined,
  }
}
