import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { stripTypeScriptTypes } from 'node:module'
import { describe, it } from 'node:test'
import { codeSamples, type SampleRequest } from '../../src/server/docs/code-samples.ts'

const post: SampleRequest = {
  method: 'POST',
  url: 'http://weir.test/api/v1/chat',
  variable: 'WEIR_API_KEY',
  body: { kind: 'json', value: { text: `it's "so"`, on: true, off: null, list: [1, {}], none: [] } },
  answersJson: true,
}
const get: SampleRequest = { method: 'GET', url: 'http://weir.test/healthz', variable: undefined, answersJson: false }
const upload: SampleRequest = {
  ...post,
  body: { kind: 'form', file: ['file', 'recording.wav'], fields: [['model', "o'neil/x"]] },
}

describe('the code samples', () => {
  it('are the same request in curl', () => {
    assert.equal(codeSamples.curl(get), 'curl "http://weir.test/healthz"')
    assert.match(codeSamples.curl({ ...get, method: 'DELETE' }), /-X DELETE/)
    assert.match(codeSamples.curl({ ...get, method: 'POST' }), /-X POST/, 'a POST without a body')
  })

  it('quote special characters of the shell', () => {
    // The shell itself says what it understood.
    const words = (sample: string): string[] => {
      const script = sample.replace(/^curl/, "printf '%s\\0'")
      const { stdout, status } = spawnSync('/bin/sh', ['-c', script], { env: { WEIR_API_KEY: 'k' }, encoding: 'utf8' })
      assert.equal(status, 0)
      return stdout.split('\0').slice(0, -1)
    }
    const [url, ...options] = words(codeSamples.curl(post))
    assert.equal(url, post.url)
    assert.deepEqual(options.slice(0, 4), ['-H', 'Authorization: Bearer k', '-H', 'Content-Type: application/json'])
    assert.deepEqual(JSON.parse(options[5] ?? ''), post.body?.kind === 'json' && post.body.value)
    assert.deepEqual(words(codeSamples.curl(upload)).slice(3), ['-F', 'file=@recording.wav', '-F', "model=o'neil/x"])
  })

  it('use the literals of Python', () => {
    assert.equal(
      codeSamples.Python(post),
      `import os
import requests

response = requests.post(
    "http://weir.test/api/v1/chat",
    headers={"Authorization": "Bearer " + os.environ["WEIR_API_KEY"]},
    json={
        "text": "it's \\"so\\"",
        "on": True,
        "off": None,
        "list": [
            1,
            {},
        ],
        "none": [],
    },
)
response.raise_for_status()
print(response.json())`,
    )
    assert.match(codeSamples.Python(upload), /files=\{"file": open\("recording.wav", "rb"\)\},\n {4}data=\{/)
    assert.doesNotMatch(codeSamples.Python(get), /import os/)
  })

  it('are TypeScript that compiles', () => {
    for (const request of [post, get, upload, { ...get, method: 'DELETE' }]) {
      const text = codeSamples.TypeScript(request)
      assert.doesNotThrow(() => stripTypeScriptTypes(text), text)
      assert.ok(text.includes(`fetch("${request.url}"`))
    }
    assert.match(codeSamples.TypeScript(get), /response\.text\(\)/)
    assert.match(codeSamples.TypeScript(upload), /openAsBlob\("recording.wav"\), "recording.wav"\)/)
  })
})
