import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { roomyLimits } from '../support/chat-stage.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/** Sends again what real coding agents sent, from test/fixtures/agents. `npm run test:agents` runs the agents themselves. */
interface Kept {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>>
}

const folder = new URL('../fixtures/agents/', import.meta.url)
const files = readdirSync(folder).filter((file) => file.endsWith('.json'))

/** The last events of a complete answer. */
const endings: Readonly<Record<string, RegExp>> = {
  '/api/v1/responses': /event: response\.completed\ndata: .*"status":"completed".*\n\n$/,
  '/api/v1/messages': /event: message_delta\ndata: .*"stop_reason":"end_turn".*\n\nevent: message_stop\ndata: .*\n\n$/,
  '/api/v1/chat/completions': /"finish_reason":"stop"[^]*data: \[DONE\]\n\n$/,
}

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({
    rate_limit: { requests_per_minute: 100_000 },
    models: [
      modelEntry([engine.url], {
        context_length: 200_000,
        max_completion_tokens: 64_000,
        supported_parameters: ['tools', 'tool_choice', 'parallel_tool_calls', 'temperature', 'top_p'],
        serverless: {
          engine: { kind: 'openai', urls: [engine.url], model: 'engine-name' },
          limits: { ...roomyLimits, token_budget: 10_000_000 },
        },
      }),
    ],
  })
})
after(async () => {
  await weir.stop()
  await engine.close()
})

describe('the requests of coding agents', () => {
  it('are kept for each agent', () =>
    assert.deepEqual(files.toSorted(), ['claude.json', 'codex.json', 'opencode.json']))

  for (const file of files) {
    it(`[A1, A2, A9] those of ${file} are answered, and each prompt starts like the one before`, async () => {
      const kept = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as readonly Kept[]
      let earlier: readonly unknown[] = []
      for (const { path, headers, body } of kept) {
        engine.calls.length = 0
        const [plain = ''] = path.split('?')
        const response = await weir.call(weir.base.replace('/api/v1', path), {
          method: 'POST',
          headers,
          body: JSON.stringify(body),
        })
        const answer = await response.text()
        assert.equal(response.status, 200, answer)
        assert.match(answer, endings[plain] ?? assert.fail(`what ends ${plain}?`))
        const sent = engine.calls[0]?.body ?? assert.fail('nothing was sent')
        // A request without tools is for a title.
        if (!Array.isArray(sent['tools'])) continue
        const messages = sent['messages'] as readonly { role: string }[]
        assert.deepEqual(messages.slice(0, earlier.length), earlier)
        assert.ok(messages.slice(1).every(({ role }) => role !== 'system'))
        earlier = messages
      }
      assert.ok(earlier.length >= 6, `${earlier.length} messages in the end`)
    })
  }
})
