import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LlamaContext, LlamaContextSequence, Token } from 'node-llama-cpp'
import { sequencePool } from '../host/llama/sequence-pool.ts'
import { within } from '../../../test/support/waiting.ts'

const never = new AbortController().signal
const tokens = (...numbers: number[]) => numbers as Token[]

/** A context whose sequences remember tokens but compute nothing. */
function context(totalSequences: number): LlamaContext {
  const getSequence = () => {
    let contextTokens: Token[] = []
    return {
      get contextTokens() {
        return contextTokens
      },
      get nextTokenIndex() {
        return contextTokens.length
      },
      async adaptStateToTokens(wanted: Token[]) {
        let length = 0
        while (length < wanted.length && wanted[length] === contextTokens[length]) length++
        contextTokens = contextTokens.slice(0, length)
      },
      evaluated(more: Token[]) {
        contextTokens = [...contextTokens, ...more]
      },
    }
  }
  return { totalSequences, getSequence } as unknown as LlamaContext
}

const evaluated = (sequence: LlamaContextSequence, more: Token[]) =>
  (sequence as unknown as { evaluated(more: Token[]): void }).evaluated(more)

describe('the sequences of a context', () => {
  it('are never used by two requests, however many arrive at once', async () => {
    const pool = sequencePool(context(2))
    const inUse = new Set<LlamaContextSequence>()
    let served = 0
    const use = async () => {
      const { sequence } = await pool.acquire(tokens(1, 2, 3), true, never)
      assert.ok(!inUse.has(sequence))
      inUse.add(sequence)
      await Promise.resolve()
      inUse.delete(sequence)
      pool.release(sequence)
      // Asks again at once, before the waiting requests have woken up.
      if (++served < 50) await use()
    }
    await Promise.all(Array.from({ length: 9 }, use))
    assert.ok(served >= 50)
  })

  it('go to waiting requests in order of arrival, and skip one that has left', async () => {
    const pool = sequencePool(context(1))
    const { sequence } = await pool.acquire(tokens(1), true, never)
    const order: string[] = []
    const leaving = new AbortController()
    const wait = (name: string, signal: AbortSignal) =>
      pool.acquire(tokens(1), true, signal).then(({ sequence: mine }) => {
        order.push(name)
        pool.release(mine)
      })
    const gone = assert.rejects(wait('gone', leaving.signal), { name: 'AbortError' })
    const others = ['first', 'second', 'third'].map((name) => wait(name, never))
    leaving.abort()
    pool.release(sequence)
    await Promise.all([gone, ...others])
    assert.deepEqual(order, ['first', 'second', 'third'])
  })

  it('are not lost when a request leaves at the moment it is served', async () => {
    const pool = sequencePool(context(1))
    const { sequence } = await pool.acquire(tokens(1), true, never)
    const leaving = new AbortController()
    const served = (signal: AbortSignal) =>
      pool.acquire(tokens(1), true, signal).then(({ sequence: mine }) => pool.release(mine))
    const all = [served(leaving.signal), served(never)]
    pool.release(sequence)
    leaving.abort()
    await within(5000, 'both are served', Promise.all(all))
  })

  it('are not lost when one cannot be prepared for its request', async () => {
    const small = context(1)
    const sequence = small.getSequence()
    const prepare = sequence.adaptStateToTokens
    sequence.adaptStateToTokens = () => Promise.reject(new Error('no memory'))
    const pool = sequencePool({ totalSequences: 1, getSequence: () => sequence } as unknown as LlamaContext)
    await assert.rejects(pool.acquire(tokens(1), true, never), /no memory/)
    sequence.adaptStateToTokens = prepare
    await within(5000, 'the next one is served', pool.acquire(tokens(1), true, never))
  })

  it('evaluate the last token of a prompt again, even if they remember all of it', async () => {
    const pool = sequencePool(context(1))
    const { sequence } = await pool.acquire(tokens(1, 2, 3), true, never)
    evaluated(sequence, tokens(1, 2, 3))
    pool.release(sequence)
    assert.equal((await pool.acquire(tokens(1, 2, 3), true, never)).cachedTokens, 2)
  })

  it('are chosen by how much of the prompt they remember, and forget it without reuse', async () => {
    const pool = sequencePool(context(2))
    const remember = async (prompt: Token[]) => {
      const { sequence } = await pool.acquire(prompt, false, never)
      evaluated(sequence, prompt)
      return sequence
    }
    const [one, other] = await Promise.all([remember(tokens(1, 2, 3, 4)), remember(tokens(9, 8, 7, 6))])
    pool.release(one)
    pool.release(other)
    const again = await pool.acquire(tokens(9, 8, 7, 5), true, never)
    assert.equal(again.sequence, other)
    assert.equal(again.cachedTokens, 3)
    pool.release(again.sequence)
    assert.equal((await pool.acquire(tokens(1, 2, 3, 4), false, never)).cachedTokens, 0)
  })

  it('keep what they remember if a prompt shares no more than a tenth of itself with it', async () => {
    for (const [shared, isLatest] of [
      [1, false],
      [2, true],
    ] as const) {
      const pool = sequencePool(context(2))
      const [longAgo, latest] = await Promise.all([tokens(9), tokens(8)].map((it) => pool.acquire(it, false, never)))
      evaluated(latest!.sequence, tokens(1, 2, 3))
      pool.release(longAgo!.sequence)
      pool.release(latest!.sequence)
      const prompt = tokens(...[1, 2].slice(0, shared), ...Array.from({ length: 10 - shared }, () => 7))
      const { sequence } = await pool.acquire(prompt, true, never)
      assert.equal(sequence === latest!.sequence, isLatest)
    }
  })
})
