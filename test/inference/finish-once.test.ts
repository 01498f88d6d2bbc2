import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatStream } from '../../src/inference/chat/answer.ts'
import { completionsStream } from '../../src/inference/completions/answer.ts'

const head = { id: '1', created: 0, model: 'test/model' }
const options = {
  includeUsage: false,
  limit: { maxTokens: 100, choices: 2, generated: 2, tokenizer: undefined },
}

describe('a stream whose engine sends the end of a choice twice', () => {
  for (const [kind, open] of [
    ['chat', chatStream],
    ['completions', completionsStream],
  ] as const) {
    it(`sends it once for each choice: ${kind}`, () => {
      const relay = open(head, options)
      const said = [0, 0, 1, 1].map((index) => {
        const choice = { index, delta: {}, text: '', finish_reason: index === 0 ? 'stop' : 'length' }
        return relay.push(Buffer.from(`data: ${JSON.stringify({ choices: [choice] })}\n\n`))
      })
      const reasons = [...said.join('').matchAll(/"finish_reason":"(\w+)"/g)].map(([, reason]) => reason)
      assert.deepEqual(reasons, ['stop', 'length'])
      assert.ok(relay.isComplete())
    })
  }
})
