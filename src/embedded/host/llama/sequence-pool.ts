import type { LlamaContext, LlamaContextSequence, Token } from 'node-llama-cpp'

export interface HeldSequence {
  sequence: LlamaContextSequence
  /** Tokens of the prompt that are in the sequence's state already. */
  cachedTokens: number
}

export interface SequencePool {
  /** Waits, first come first served, for a free sequence and leaves in it only what the prompt can reuse. */
  hold(prompt: readonly Token[], reuse: boolean, signal: AbortSignal): Promise<HeldSequence>
  release(sequence: LlamaContextSequence): void
}

interface Waiting {
  prompt: readonly Token[]
  resolve(sequence: LlamaContextSequence): void
}

/** A shorter common beginning is not worth giving up what another conversation left in a sequence. */
const worthwhileShare = 0.1

/**
 * The parallel sequences of one context. Each keeps its state after an answer, so that the next turn of a conversation
 * evaluates only what is new.
 */
export function sequencePool(context: LlamaContext): SequencePool {
  // Ordered by last use, longest ago first.
  const idle = Array.from({ length: context.totalSequences }, () => context.getSequence())
  // Nobody waits while one is idle.
  const waiting: Waiting[] = []

  async function nextFree(prompt: readonly Token[], signal: AbortSignal): Promise<LlamaContextSequence> {
    const { promise, resolve, reject } = Promise.withResolvers<LlamaContextSequence>()
    const place: Waiting = { prompt, resolve }
    const leave = () => {
      const at = waiting.indexOf(place)
      // It has its sequence already, and gives it back when it finds that its caller has left.
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
    let bestLength = prompt.length * worthwhileShare
    idle.forEach((sequence, index) => {
      const length = commonLength(sequence.contextTokens, prompt)
      if (length > bestLength) [best, bestLength] = [index, length]
    })
    const [sequence] = idle.splice(best, 1)
    if (!sequence) throw new Error('no free sequence')
    return sequence
  }

  function release(sequence: LlamaContextSequence): void {
    idle.push(sequence)
    const next = waiting.shift()
    // Taken for it here and now: a request that comes before it wakes must not find the sequence idle.
    next?.resolve(take(next.prompt))
  }

  return {
    async hold(prompt, reuse, signal) {
      signal.throwIfAborted()
      const usable = reuse ? prompt : []
      const sequence = idle.length > 0 ? take(usable) : await nextFree(usable, signal)
      try {
        // At least the last token must be evaluated: its logits choose the first word of the answer.
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

function commonLength(a: readonly Token[], b: readonly Token[]): number {
  const end = Math.min(a.length, b.length)
  let length = 0
  while (length < end && a[length] === b[length]) length++
  return length
}
