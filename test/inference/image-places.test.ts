import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Model } from '../../src/catalog/model.ts'
import { checkMessages } from '../../src/inference/chat/messages.ts'
import type { ChatRequest } from '../../src/inference/chat/schema.ts'
import { dataUrl, png } from '../support/image-samples.ts'
import { plainFacts } from '../support/made-job.ts'

const image = { type: 'image_url', image_url: { url: dataUrl('png', png()) } }

async function check(role: string, categories: readonly string[]): Promise<unknown> {
  const model = { id: 'x/y', categories } as unknown as Model
  const messages = [{ role, content: [image], ...(role === 'tool' ? { tool_call_id: 'a' } : {}) }]
  return checkMessages({ messages } as unknown as ChatRequest, model, plainFacts)
}

describe('an image in a chat', () => {
  it('is accepted from the user, by a model that can see', async () => {
    assert.ok(await check('user', ['llm', 'vision']))
    await assert.rejects(check('user', ['llm']), { code: 'unsupported_content', message: /does not accept images/ })
  })

  for (const role of ['system', 'developer', 'assistant', 'tool']) {
    it(`is refused in a message of the role ${role}`, async () => {
      const refusal = { code: 'unsupported_content', param: 'messages[0].content[0]', message: /only allowed in user/ }
      await assert.rejects(check(role, ['vision']), refusal)
    })
  }
})
