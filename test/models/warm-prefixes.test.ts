import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { modelFiles } from '../../src/local-models/files/model-files.ts'
import { findModel } from '../../packages/local-models/manifest/manifest.ts'
import { llamaHost, type HostClient } from '../../packages/local-models/test/host-client.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'
import { modelsDirectory } from './service.ts'

const TURNS = 4
const SESSIONS = 3

/** Two hosts with real weights, as two addresses of one model. */
describe('conversations on two real engines', () => {
  const model = findModel('smollm2')
  const hosts: HostClient[] = []
  let directory: string
  let urls: string[] = []
  before(async () => {
    assert.ok(model)
    await modelFiles(modelsDirectory, { environment: process.env }).pull(model.catalog.id)
    directory = await mkdtemp(join(tmpdir(), 'weir-warm-'))
    for (const name of ['one', 'two']) {
      const socketDirectory = join(directory, name)
      await mkdir(socketDirectory)
      hosts.push(await llamaHost({ models: [model], modelsDirectory, socketDirectory }))
      urls.push(`unix:${join(socketDirectory, 'host.sock')}:/v1`)
    }
  })
  after(async () => {
    for (const host of hosts) await host.close()
    await rm(directory, { recursive: true })
  })

  async function withWeir<Result>(balance: string, use: (weir: TestWeir) => Promise<Result>): Promise<Result> {
    const { id, context_length, categories } = model!.catalog
    const engine = { kind: 'openai', urls, model: id, balance }
    const models = [{ id, context_length, categories, serverless: { engine } }]
    const weir = await startWeir({ server: { port: 0, admin_port: 0 }, models })
    try {
      return await use(weir)
    } finally {
      await weir.stop()
    }
  }

  /** Several conversations at the same time. Returns the cached share of each turn's input, over all of them. */
  function cachedByTurn(weir: TestWeir, topic: string): Promise<number[]> {
    const sessions = Array.from({ length: SESSIONS }, (_, index) => [
      { role: 'system', content: `${topic} ${index}. You are a patient assistant. `.repeat(20) },
      { role: 'user', content: `Tell me something about number ${index}.` },
    ])
    return (async () => {
      const shares: number[] = []
      for (let turn = 0; turn < TURNS; turn++) {
        const used = await Promise.all(
          sessions.map(async (messages) => {
            const body = { model: model!.catalog.id, messages, max_tokens: 8 }
            const response = await weir.call('/chat/completions', {
              method: 'POST',
              headers: { 'content-type': 'application/json' },
              body: JSON.stringify(body),
            })
            const text = await response.text()
            assert.equal(response.status, 200, text)
            const { usage, choices } = JSON.parse(text)
            messages.push(choices[0].message, { role: 'user', content: `And what about ${turn}? `.repeat(10) })
            return [usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens] as const
          }),
        )
        const [input, cached] = [0, 1].map((column) => used.reduce((sum, row) => sum + row[column]!, 0))
        shares.push(cached! / input!)
        // Next time, another conversation asks first.
        sessions.push(sessions.shift()!)
      }
      return shares
    })()
  }

  it('find most of their earlier turns in the cache, more than by load alone', async (t) => {
    const before = await withWeir('least_busy', (weir) => cachedByTurn(weir, 'Load'))
    const now = await withWeir('prefix', (weir) => cachedByTurn(weir, 'Prefix'))
    const percent = (shares: number[]): string => shares.map((it) => `${Math.round(it * 100)} %`).join(', ')
    t.diagnostic(`cached input by turn: least_busy ${percent(before)}; prefix ${percent(now)}`)
    // Which engine is busy at the second turn is a matter of luck, so a conversation may move once.
    assert.ok(Math.min(...now.slice(2)) > 0.5, percent(now))
    const sum = (shares: number[]): number => shares.slice(1).reduce((total, it) => total + it, 0)
    assert.ok(sum(now) > sum(before), `${percent(now)} against ${percent(before)}`)
  })
})
