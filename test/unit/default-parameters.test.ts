import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Model } from '../../src/core/catalog.ts'
import { acceptedParameters } from '../../src/endpoints/parameters.ts'

const none = { id: 'x/y', supportedParameters: [] as readonly string[] } as Model

/** For each parameter, the values that ask for the default, and some that do not. */
const cases: Readonly<Record<string, readonly [usual: readonly unknown[], others: readonly unknown[]]>> = {
  n: [[1], [2, 0]],
  best_of: [[1], [2]],
  top_p: [[1], [0, 0.9]],
  frequency_penalty: [[0], [1, -1]],
  presence_penalty: [[0], [1]],
  repetition_penalty: [[1], [0, 1.1]],
  top_k: [[-1], [0, 1, 40]],
  min_p: [[0], [0.1]],
  logprobs: [[false], [true]],
  top_logprobs: [[0], [1]],
  stop: [[[]], ['x', ['x']]],
  tools: [[[]], [[{}]]],
  tool_choice: [
    ['auto', 'none'],
    ['required', {}],
  ],
  parallel_tool_calls: [[true], [false]],
  logit_bias: [[{}], [{ 1: 1 }]],
  quality: [['auto'], ['hd']],
  background: [['auto'], ['opaque']],
  response_format: [[{ type: 'text' }], [{ type: 'json_object' }]],
  temperature: [[], [1, 0]],
}

describe('a parameter that the model does not list', () => {
  for (const [name, [usual, others]] of Object.entries(cases)) {
    const accepted = (value: unknown, model = none) =>
      acceptedParameters({ [name]: value }, { [name]: {} }, new Set(), model)

    it(`is allowed when it asks for what happens anyway, and is not sent on: ${name}`, () => {
      for (const value of [...usual, null, undefined]) assert.equal(accepted(value).size, 0)
    })

    it(`is refused when it would change the answer: ${name}`, () => {
      for (const value of others) {
        assert.throws(() => accepted(value), { code: 'unsupported_parameter', param: name }, JSON.stringify(value))
        assert.ok(accepted(value, { ...none, supportedParameters: [name] }).has(name), 'unless the model lists it')
      }
    })
  }
})
