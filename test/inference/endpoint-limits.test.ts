import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../src/shared/errors.ts'
import type { JsonBody } from '../../src/shared/json/json-body.ts'
import { tokenCount } from '../../src/engines/dialects/reading.ts'
import { chatToolName } from '../../src/inference/chat/tool-names.ts'
import { messagesError } from '../../src/inference/messages/errors.ts'
import { parameterTokens, requireSmallParameters } from '../../src/inference/request/parameters.ts'

/** The limits of the endpoints, at the last value that is within and the first that is not. */

/** A body with one parameter of this many bytes. */
function bodyWith(name: string, length: number): JsonBody {
  const bytes = Buffer.from(`"${'word '.repeat(length)}`.slice(0, length - 1) + '"')
  return { bytes, scan: { fields: [{ name, start: 0, valueStart: 0, end: length }] } } as unknown as JsonBody
}

describe('the limits of a request', () => {
  it('[A5] are 64 characters for the name of a tool', () => {
    assert.equal(chatToolName('x'.repeat(64)), 'x'.repeat(64))
    assert.notEqual(chatToolName('x'.repeat(65)), 'x'.repeat(65))
    assert.equal(chatToolName('x'.repeat(65)).length, 64)
  })

  it('[A6] distinguish an input that fills the context from one that only leaves too little room', () => {
    const messageFor = (input: number): string =>
      messagesError(
        new ApiError('context_length_exceeded', 'too long', { tokens: { input, output: 5, limit: 100 } }),
        'id',
      ).error.message
    assert.match(messageFor(100), /^prompt is too long: 100 tokens > 100 maximum$/)
    assert.match(messageFor(99), /^input length and `max_tokens` exceed context limit: 99 \+ 5 > 100/)
  })

  it('are the largest context of a catalog for a count of tokens', () => {
    assert.equal(tokenCount(100_000_000), 100_000_000)
    assert.equal(tokenCount(100_000_001), undefined)
    assert.equal(tokenCount(-1), undefined)
  })

  it('are 4 MiB for all parameters together', () => {
    const names = new Set(['tools', 'stop'])
    const fields = (...lengths: number[]): JsonBody =>
      ({
        scan: {
          fields: lengths.map((length, index) => ({
            name: ['tools', 'stop', 'messages'][index],
            valueStart: 7,
            end: 7 + length,
          })),
        },
      }) as unknown as JsonBody
    requireSmallParameters(fields(4_194_303, 1), names)
    requireSmallParameters(fields(4_194_304, 0, 9_000_000), names)
    assert.throws(() => requireSmallParameters(fields(4_194_304, 1), names), /4194304 bytes in total/)
    assert.throws(() => requireSmallParameters(fields(4_194_305), names), /4194304 bytes in total/)
  })

  it('are 24 bytes for a parameter that is a setting and costs no tokens', () => {
    const names = new Set(['user_setting', 'tools'])
    assert.deepEqual(parameterTokens(bodyWith('user_setting', 24), names, undefined), { charged: 0, likely: 0 })
    const { charged, likely } = parameterTokens(bodyWith('user_setting', 25), names, undefined)
    assert.ok(charged > 0 && likely === 0, `${charged} ${likely}`)
    assert.ok(parameterTokens(bodyWith('tools', 24), names, undefined).likely > 0, 'tools are always text')
  })
})
