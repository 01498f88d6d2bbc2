import assert from 'node:assert/strict'
import { stripTypeScriptTypes } from 'node:module'
import { after, before, describe, it } from 'node:test'
import OpenAI from 'openai'
import { sdkSamples } from '../../src/server/docs/code-samples.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({ models: [modelEntry([engine.url], { supported_parameters: ['temperature', 'top_k'] })] })
})
after(async () => {
  await weir.stop()
  await engine.close()
})

describe('samples with the SDK of OpenAI', () => {
  const body = {
    kind: 'json',
    value: {
      model: 'meta/test-8b',
      messages: [{ role: 'user', content: 'Say "hi", it\'s late' }],
      temperature: 0.5,
      top_k: 40,
    },
  } as const

  it('in TypeScript make the request that they show', async () => {
    engine.script = { tokens: ['Good ', 'night'] }
    const base = `${weir.service.url}/api/v1`
    const sample = sdkSamples({ base, path: '/chat/completions', variable: 'WEIR_API_KEY', body })?.TypeScript() ?? ''
    assert.match(sample, /^import OpenAI from 'openai'$/m)
    const script = stripTypeScriptTypes(sample).replace(/^import .*$/m, '')
    const printed: unknown[] = []
    const AsyncFunction = (async () => {}).constructor as FunctionConstructor
    await new AsyncFunction('OpenAI', 'process', 'console', script)(
      OpenAI,
      { env: { WEIR_API_KEY: weir.key } },
      { log: (value: unknown) => printed.push(value) },
    )
    assert.deepEqual(printed, ['Good night'])
    const sent = engine.calls.at(-1)?.body
    assert.deepEqual([sent?.['temperature'], sent?.['top_k']], [0.5, 40])
    assert.deepEqual(sent?.['messages'], body.value.messages)
  })

  it('in Python name each parameter, and pass on those that the SDK does not know', () => {
    const request = { base: 'https://weir.test/api/v1', path: '/chat/completions', variable: 'WEIR_API_KEY', body }
    assert.equal(
      sdkSamples(request)?.Python(),
      `import os
from openai import OpenAI

client = OpenAI(base_url="https://weir.test/api/v1", api_key=os.environ["WEIR_API_KEY"])

completion = client.chat.completions.create(
    model="meta/test-8b",
    messages=[
        {
            "role": "user",
            "content": "Say \\"hi\\", it's late",
        },
    ],
    temperature=0.5,
    extra_body={
        "top_k": 40,
    },
)
print(completion.choices[0].message.content)`,
    )
  })

  it('upload files, and do without endpoints that the SDK does not have', () => {
    const form = { kind: 'form', file: ['file', 'speech.wav'], fields: [['model', 'openai/whisper']] } as const
    const request = { base: 'https://weir.test/api/v1', path: '/audio/transcriptions', variable: 'KEY', body: form }
    assert.match(sdkSamples(request)?.Python() ?? '', /\n {4}file=open\("speech.wav", "rb"\),\n {4}model=/)
    const text = sdkSamples(request)?.TypeScript() ?? ''
    assert.match(text, /file: createReadStream\("speech.wav"\)/)
    assert.doesNotThrow(() => stripTypeScriptTypes(text))
    assert.equal(sdkSamples({ ...request, path: '/rerank' }), undefined)
  })
})
