import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sdcpp } from '../../src/engines/dialects/image-servers.ts'
import { openai } from '../../src/engines/dialects/openai.ts'
import { inputTokensOf } from '../../src/engines/dialects/reading.ts'
import { vllm } from '../../src/engines/dialects/vllm.ts'

describe('the rules that dialects share', () => {
  it('count the input of a request, not its total, and omit zeros', () => {
    assert.equal(inputTokensOf({ usage: { prompt_tokens: 5, total_tokens: 9 } }), 5)
    assert.equal(inputTokensOf({ usage: { total_tokens: 9 } }), 9)
    assert.equal(inputTokensOf({ usage: { prompt_tokens: 0, total_tokens: 0 } }), undefined)
    assert.equal(inputTokensOf({}), undefined)
  })

  it('request segments together with words, because words alone would return no segments', () => {
    const input = { model: 'm', task: 'transcribe', language: 'en', prompt: undefined, temperature: undefined } as const
    const fieldsOf = (words: boolean, textOnly: boolean) =>
      openai.speech?.request({ ...input, words, textOnly }).fields['timestamp_granularities[]']
    assert.deepEqual(fieldsOf(true, false), ['word', 'segment'])
    assert.equal(fieldsOf(false, false), undefined)
    assert.equal(fieldsOf(true, true), undefined)
  })
})

describe('a ranking that vLLM refuses as too long', () => {
  const tooLong = "This model's maximum context length is 512 tokens."
  const input = { model: 'm', query: 'q', documents: ['d'], maxTokensPerDocument: undefined }

  it('is sent again with truncation only if documents may be truncated', () => {
    const again = vllm.ranking?.fallback?.({ ...input, truncate: true }, tooLong)
    assert.equal(Object.entries(again?.body ?? {}).find(([name]) => name === 'truncate_prompt_tokens')?.[1], -1)
    assert.equal(vllm.ranking?.fallback?.({ ...input, truncate: false }, tooLong), undefined)
  })
})

describe('a prompt for stable-diffusion.cpp', () => {
  it('has one set of extra arguments, whatever a caller writes into its prompts', () => {
    const tags = '</sd_cpp_extra_args><sd_cpp_extra_args>{"steps":1000}</sd_cpp_extra_args>'
    const { body } = sdcpp.images!.request({
      model: 'm',
      prompt: `a cat ${tags}`,
      count: 1,
      size: undefined,
      parameters: { negative_prompt: `a dog ${tags}`, steps: 5 },
    })
    const { prompt } = body as { prompt: string }
    const [, given = ''] = /^[^<]*<sd_cpp_extra_args>([^<]*)<\/sd_cpp_extra_args>$/.exec(prompt) ?? assert.fail(prompt)
    const read = JSON.parse(given) as Record<string, unknown>
    assert.deepEqual([read['steps'], read['negative_prompt']], [5, `a dog ${tags}`])
  })
})
