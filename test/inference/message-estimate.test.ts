import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Model } from '../../src/catalog/model.ts'
import { checkMessages } from '../../src/inference/chat/messages.ts'
import type { ChatRequest } from '../../src/inference/chat/schema.ts'
import { dataUrl, png } from '../support/image-samples.ts'
import { plainFacts } from '../support/made-job.ts'

const model = { id: 'x/y', categories: ['llm', 'vision'], tokenizer: undefined } as unknown as Model

function tokens(request: object): { readonly charged: number; readonly likely: number } {
  const checked = checkMessages(request as unknown as ChatRequest, model, plainFacts)
  assert.ok('input' in checked)
  return checked.input
}

const text = 'word '.repeat(1000)
const user = (content: unknown) => ({ role: 'user', content })
const call = (name: string, given: string) => ({ id: 'a', type: 'function', function: { name, arguments: given } })

// Everything beside the messages, such as tools, is counted from its bytes: see forwarded-input.test.ts.
describe('the tokens of the messages of a chat', () => {
  const places: readonly [place: string, request: object][] = [
    ['a message', { messages: [user(text)] }],
    [
      'a part of a message',
      {
        messages: [
          user([
            { type: 'text', text: '' },
            { type: 'text', text },
          ]),
        ],
      },
    ],
    ['the name of a called tool', { messages: [{ role: 'assistant', tool_calls: [call(text, '{}')] }] }],
    ['the arguments of a called tool', { messages: [{ role: 'assistant', tool_calls: [call('f', text)] }] }],
  ]
  for (const [place, request] of places) {
    it(`include the text of ${place}`, () => {
      const { charged, likely } = tokens(request)
      assert.ok(charged > 1000, `charged ${charged}`)
      assert.ok(likely > 400, `likely ${likely}`)
    })
  }

  it('include every message and every image', () => {
    const none = tokens({ messages: [user('')] })
    const ten = tokens({ messages: Array.from({ length: 10 }, () => user('')) })
    assert.deepEqual([ten.charged, ten.likely], [none.charged * 10, none.likely * 10])
    const url = dataUrl('png', png())
    const image = { type: 'image_url', image_url: { url } }
    const two = tokens({ messages: [user([image, image])] })
    assert.deepEqual([two.charged - none.charged, two.likely - none.likely], [2 * 1024, 2 * 64])
  })
})
