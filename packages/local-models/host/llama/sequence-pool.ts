import type { LlamaContext, LlamaContextSequence, Token } from 'node-llama-cpp'

export interface AcquiredSequence {
  readonly sequence: LlamaContextSequence
  /** How many tokens of the prompt are already in the sequence's state. */
  readonly cachedTokens: number
}

export interface SequencePool {
  /** Waits, first come first served, for a free sequence, and keeps only the state that the prompt can reuse. */
  acquire(prompt: readonly Token[], reuse: boolean, signal: AbortSignal): Promise<AcquiredSequence>
  release(sequence: LlamaContextSequence): void
}

interface WaitingRequest {
  readonly prompt: readonly Token[]
  resolve(sequence: LlamaContextSequence): void
}

/** Sharing less than this part of the prompt is not worth discarding another conversation's state. */
const WORTHWHILE_SHARE = 0.1

/**
 * The parallel sequences of one context. Each keeps its state after an answer, so that the next turn of a conversation
 * evaluates only what is new.
 */
export function sequencePool(context: LlamaContext): SequencePool {
  /** In order of last use, longest ago first. */
  const idle = Array.from({ length: context.totalSequences }, () => context.getSequence())
  /** Empty while any sequence is idle. */
  const waiting: WaitingRequest[] = []

  async function nextFree(prompt: readonly Token[], signal: AbortSignal): Promise<LlamaContextSequence> {
    const { promise, resolve, reject } = Promise.withResolvers<LlamaContextSequence>()
    const place: WaitingRequest = { prompt, resolve }
    const leave = (): void => {
      const at = waiting.indexOf(place)
      // It has already been given a sequence, and releases it when it notices that its caller has left.
      if (at < 0) return
      waiting.splice(at, 1)
      reject(signal.reason as Error)
    }
    waiting.push(place)
    signal.addEventListener('abort', leave, { once: true })
    return promise.finally(() => signal.removeEventListener('abort', leave))
  }

  function take(prompt: readonly Token[]): LlamaContextSequence {
    let best = 0
    let bestLength = prompt.length * WORTHWHILE_SHARE
    for (const [index, sequence] of idle.entries()) {
      const length = commonLength(sequence.contextTokens, prompt)
      if (length > bestLength) [best, bestLength] = [index, length]
    }
    const [sequence] = idle.splice(best, 1)
    if (!sequence) throw new Error('no free sequence')
    return sequence
  }

  function release(sequence: LlamaContextSequence): void {
    idle.push(sequence)
    const next = waiting.shift()
    // Taken here and now: a request that arrives before the waiting one wakes up must not find the sequence idle.
    next?.resolve(take(next.prompt))
  }

  return {
    async acquire(prompt, reuse, signal) {
      signal.throwIfAborted()
      const usable = reuse ? prompt : []
      const sequence = idle.length > 0 ? take(usable) : await nextFree(usable, signal)
      try {
        // The last token must be evaluated in any case: its logits choose the first token of the answer.
        await sequence.adaptStateToTokens(usable.slice(0, -1), false)
      } catch (error) {
        release(sequence)
        throw error
      }
      return { sequence, cachedTokens: sequence.nextTokenIndex }
    },
    release,
  }
}

function commonLength(one: readonly Token[], other: readonly Token[]): number {
  const end = Math.min(one.length, other.length)
  let length = 0
  while (length < end && one[length] === other[length]) length++
  return length
}
