import type { StreamRelay } from '../../engines/job.ts'
import type { GenerationOptions } from './generation-options.ts'
import type { CallStream } from './generation-stream.ts'
import { sumOfChoices, type ReportedUsage } from './generation-usage.ts'

/**
 * The streams of all calls of a request as one. `open` starts the stream of one call, for the choices in the options.
 * If calls have one choice each, the n-th call has the n-th choice.
 */
export function joinedStream(
  options: GenerationOptions,
  open: (options: GenerationOptions) => CallStream,
): StreamRelay {
  const { limit, prompts = 1, oneChoicePerCall } = options
  if (!oneChoicePerCall || limit.choices === 1) return { ...open(options), next: () => false }
  const streams = [open(choiceOf(options, 0))]
  const current = (): CallStream => streams[streams.length - 1]!
  const total = (count: (stream: CallStream) => number): number => streams.reduce((sum, it) => sum + count(it), 0)

  function reported(): ReportedUsage | undefined {
    const counts = new Map<number, ReportedUsage>()
    for (const [index, stream] of streams.entries()) {
      const count = stream.reported()
      if (count) counts.set(index, count)
    }
    return counts.size === 0 ? undefined : sumOfChoices(counts, limit.choices / prompts)
  }

  return {
    push: (chunk) => current().push(chunk),
    isDone: () => current().isDone(),
    isBroken: () => current().isBroken(),
    next() {
      if (!current().isComplete() || streams.length === limit.choices) return false
      streams.push(open(choiceOf(options, streams.length)))
      return true
    },
    isComplete: () => streams.length === limit.choices && streams.every((stream) => stream.isComplete()),
    isPastLimit: () => streams.some((stream) => stream.isPastLimit()),
    reportedUsage: () => reported()?.usage,
    deltaCount: () => total((stream) => stream.deltaCount()),
    deltasSinceReport: () => total((stream) => stream.deltasSinceReport()),
    closing: (usage) => current().closing(usage, reported()),
    failure: (error) => current().failure(error),
  }
}

/** The options for one choice alone. */
function choiceOf(options: GenerationOptions, index: number): GenerationOptions {
  const { limit, prompts = 1 } = options
  const echoed = limit.echoedCharacters?.[Math.floor((index * prompts) / limit.choices)]
  return {
    ...options,
    limit: {
      ...limit,
      choices: 1,
      generated: 1,
      echoedCharacters: echoed === undefined ? undefined : [echoed],
    },
    prompts: 1,
    firstIndex: index,
  }
}
