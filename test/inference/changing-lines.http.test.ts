import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { withoutChangingLines } from '../../src/inference/chat/prompt.ts'
import type { ChatMessage } from '../../src/inference/chat/schema.ts'
import { chatStage } from '../support/chat-stage.ts'
import type { EngineCallSeen, Script } from '../support/scripted-engine.ts'

/** `prompts.changing_lines`: what changes in a system prompt goes behind what stays the same. */

function moved(messages: readonly ChatMessage[], ...starts: string[]): readonly ChatMessage[] | undefined {
  return withoutChangingLines(messages, starts)
}

describe('a line that changes', () => {
  it('[A9] goes to the end of the last message', () => {
    const system = 'sum: 1f\nBe brief.\nToday is Monday\nBe kind. Today is not moved here.'
    const messages: ChatMessage[] = [
      { role: 'system', content: system },
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'Two' },
      { role: 'tool', tool_call_id: 'x', content: 'Three' },
    ]
    assert.deepEqual(moved(messages, 'sum:', 'Today is '), [
      { role: 'system', content: 'Be brief.\nBe kind. Today is not moved here.' },
      ...messages.slice(1, -1),
      { role: 'tool', tool_call_id: 'x', content: 'Three\n\nsum: 1f\nToday is Monday' },
    ])
  })

  it('is found in lists of parts, and at the very end', () => {
    const text = (it: string) => ({ type: 'text' as const, text: it })
    const messages: ChatMessage[] = [
      { role: 'developer', content: [text('a\nsum: 1'), text('sum: 2')] },
      { role: 'user', content: [text('b')] },
    ]
    assert.deepEqual(moved(messages, 'sum:'), [
      { role: 'developer', content: [text('a\n'), text('')] },
      { role: 'user', content: [text('b'), text('sum: 1\nsum: 2')] },
    ])
  })

  it('stays in place if there is nothing to move, or no place to move it to', () => {
    const user: ChatMessage = { role: 'user', content: 'sum: 1' }
    const system: ChatMessage = { role: 'system', content: 'sum: 1' }
    assert.equal(moved([system, user], 'other'), undefined)
    assert.equal(moved([system, user]), undefined)
    assert.equal(moved([user], 'sum:'), undefined)
    assert.equal(moved([system], 'sum:'), undefined)
    assert.equal(moved([system, { role: 'assistant', content: 'I' }], 'sum:'), undefined)
  })
})

/** An engine with a cache of prefixes, as they all have one: it counts what a prompt has in common with earlier ones. */
function cachingEngine(): (call: EngineCallSeen) => Script {
  const prompts: string[] = []
  return ({ body }) => {
    const prompt = JSON.stringify([body['tools'] ?? [], body['messages']])
    const shared = Math.max(0, ...prompts.map((earlier) => sharedStart(earlier, prompt)))
    prompts.push(prompt)
    return { promptTokens: Math.ceil(prompt.length / 4), cachedTokens: Math.floor(shared / 4), tokens: ['Done.'] }
  }
}

function sharedStart(one: string, other: string): number {
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  return at
}

/** The share of the input of the later turns that came from the cache, in a session like those of Claude Code. */
async function cachedShare(t: TestContext, prompts: object): Promise<number> {
  const { weir } = await chatStage(t, {
    script: cachingEngine(),
    config: { prompts },
    model: { context_length: 100_000, max_completion_tokens: 1000 },
  })
  const messages: object[] = []
  for (let turn = 0; turn < 6; turn++) {
    messages.push({ role: 'user', content: `Step ${turn}: ${'some output of a tool. '.repeat(40)}` })
    const response = await weir.call('/messages?beta=true', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'meta/test-8b',
        max_tokens: 100,
        system: [
          { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1; cch=${turn.toString(16).repeat(5)};` },
          { type: 'text', text: `You are an agent. ${'Follow the rules. '.repeat(400)}` },
        ],
        messages,
      }),
    })
    assert.equal(response.status, 200, await response.text())
    messages.push({ role: 'assistant', content: 'Done.' })
  }
  const rows = (await weir.ledger()).toSorted((one, other) => one.startedAt - other.startedAt).slice(1)
  const sum = (of: 'inputTokens' | 'cachedInputTokens'): number => rows.reduce((total, row) => total + row[of], 0)
  return sum('cachedInputTokens') / sum('inputTokens')
}

describe('prompts.changing_lines', () => {
  it('[A9] turns a session without cache hits into one that is mostly cached', async (t) => {
    const before = await cachedShare(t, {})
    const after = await cachedShare(t, { changing_lines: ['x-anthropic-billing-header:'] })
    t.diagnostic(`cached input: ${(100 * before).toFixed(1)} % before, ${(100 * after).toFixed(1)} % after`)
    assert.ok(before < 0.05, `${before}`)
    assert.ok(after > 0.8, `${after}`)
  })
})
