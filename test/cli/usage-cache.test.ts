import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { startWeir } from '../support/weir.ts'

describe('weir usage cache', () => {
  it('shows how much of the input of a key was cached, and what to change in its prompts', async (t) => {
    const engine = await scriptedEngine()
    engine.script = { promptTokens: 1000, cachedTokens: 0 }
    const weir = await startWeir(stageConfig([engine.url], { engine: { balance: 'prefix' } }))
    t.after(async () => {
      await weir.stop()
      await engine.close()
    })
    const chat = async (day: string): Promise<void> => {
      const content = `Today is ${day}. ${'You answer questions about rivers. '.repeat(60)}`
      await (await weir.chat({ messages: [{ role: 'system', content }], max_tokens: 5 })).text()
    }
    await chat('2026-11-15')
    await chat('2026-11-16')
    engine.script = { promptTokens: 1000, cachedTokens: 900 }
    await chat('2026-11-16')

    const where = ['--config', weir.configFile, '--data', weir.dataDir]
    const listed = await commandLine(['usage', 'cache', ...where, '--json'])
    const { data } = listed.json<{ data: Record<string, unknown>[] }>()
    assert.deepEqual(
      data.map(({ workspace, requests, cache_hit_rate: rate }) => [workspace, requests, rate]),
      [['default', 3, 0.3]],
    )
    const { stdout } = await commandLine(['usage', 'cache', ...where, '--workspace', 'default'])
    assert.match(stdout, /^WORKSPACE +KEY +MODEL +REQUESTS +CACHED\ndefault +key_\w+ +meta\/test-8b +3 +30 %\n/)
    assert.match(
      stdout,
      /not cached: 1 prompt changed near the beginning, last in message 0 after character 0; 1 new\n/,
    )
    assert.doesNotMatch(stdout, /rivers/)
  })

  it('needs a running service', async (t) => {
    const data = mkdtempSync(join(tmpdir(), 'weir-no-service-'))
    t.after(() => rmSync(data, { recursive: true, force: true }))
    assert.match((await commandLine(['usage', 'cache', '--data', data])).stderr, /no service is running on /)
  })
})
