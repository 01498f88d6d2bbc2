import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Model } from '../../src/catalog/model.ts'
import { acceptedParameters } from '../../src/inference/request/parameters.ts'

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
      acceptedParameters({ [name]: value }, { [name]: {} }, new Set(), model, {})

    it(`is allowed when it has no effect, and is not forwarded: ${name}`, () => {
      for (const value of [...usual, null, undefined]) assert.equal(accepted(value).size, 0)
    })

    it(`is refused when it would change the answer: ${name}`, () => {
      for (const value of others) {
        assert.throws(() => accepted(value), { code: 'unsupported_parameter', param: name }, JSON.stringify(value))
        assert.ok(accepted(value, { ...none, supportedParameters: [name] }).has(name), 'unless the model lists it')
      }
    })
  }

  it('is refused when it would keep the model from calling its tools: tool_choice none', () => {
    const known = { tools: {}, tool_choice: {} }
    const lists = { ...none, supportedParameters: ['tools'] }
    const request = { tools: [{}], tool_choice: 'none' }
    assert.throws(() => acceptedParameters(request, known, new Set(), lists, {}), {
      code: 'unsupported_parameter',
      param: 'tool_choice',
    })
  })
})

describe('best_of', () => {
  it('has no effect when it equals n', () => {
    const accepted = (request: Readonly<Record<string, unknown>>) =>
      acceptedParameters(request, { n: {}, best_of: {} }, new Set(), { ...none, supportedParameters: ['n'] }, {})
    assert.deepEqual([...accepted({ n: 2, best_of: 2 })], ['n'])
    assert.throws(() => accepted({ n: 2, best_of: 3 }), { code: 'unsupported_parameter', param: 'best_of' })
  })
})

describe('a parameter that the engine does not accept', () => {
  const lists = { ...none, supportedParameters: ['n'] }

  it('is refused even if the model lists it', () => {
    assert.throws(() => acceptedParameters({ n: 2 }, { n: {} }, new Set(), lists, { n: 'refused' }), {
      code: 'unsupported_parameter',
      param: 'n',
    })
  })

  it('is omitted when it has no effect', () => {
    assert.equal(acceptedParameters({ n: 1 }, { n: {} }, new Set(), lists, { n: 'refused' }).size, 0)
  })
})
