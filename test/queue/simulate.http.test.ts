import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type CliResult } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { gate } from '../support/waiting.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'

describe('weir simulate --replay', () => {
  let engine: ScriptedEngine
  let weir: TestWeir

  before(async () => {
    engine = await scriptedEngine()
    weir = await startWeir(stageConfig([engine.url]))
  })

  after(async () => {
    await weir.stop()
    await engine.close()
  })

  function replay(args: string): Promise<CliResult> {
    const options = ['--config', weir.configFile, '--data', weir.dataDir, '--json']
    return commandLine(['simulate', '--replay', ...args.split(' '), ...options])
  }

  it('[Q7] reads arrival times, input, allowed output and real output from the ledger', async () => {
    const from = new Date(Date.now() - 1000).toISOString()
    // None is answered before all of them have arrived.
    const { opened, open } = gate()
    engine.script = { tokens: ['a', 'b'], promptTokens: 10, hold: { afterTokens: 0, until: opened } }
    const answers = [weir.chat({ max_tokens: 20 }), weir.chat({ max_tokens: 30, n: 2 }), weir.chat({})]
    await engine.arrived(3)
    open()
    await Promise.all(answers)
    const to = new Date().toISOString()

    const rows = (await weir.ledger()).toSorted((one, other) => one.maxTokens - other.maxTokens)
    assert.deepEqual(
      rows.map(({ maxTokens, inputTokens, outputTokens }) => [maxTokens, inputTokens, outputTokens]),
      [
        [20, 10, 2],
        [60, 10, 2],
        [256, 10, 2],
      ],
    )
    // All three overlap, so with room for two, one waits.
    interface Report {
      readonly duration_ms: number
      readonly runs: readonly Record<string, number>[]
    }
    const period = `meta/test-8b --from ${from} --to ${to}`
    // Each takes 20 s in the simulation, so however far apart this machine let them arrive, they overlap.
    const limits = '--token-budget 1000 --max-concurrent-requests 2,3 --tokens-per-second 0.1'
    const report = (await replay(`${period} ${limits}`)).json<Report>()
    const [two, three] = report.runs
    assert.equal(report.duration_ms, Date.parse(to) - Date.parse(from))
    assert.deepEqual([two?.['requests'], two?.['admitted_after_wait']], [3, 1])
    assert.ok((two?.['concurrency_use'] ?? 0) > 0, 'they arrive within the period')
    assert.deepEqual([three?.['requests'], three?.['admitted_at_once']], [3, 3])

    // The largest request costs 10 + 256 tokens, more than this budget.
    const tight = (await replay(`test-8b --from ${from} --to ${to} --token-budget 265`)).json<Report>()
    assert.equal(tight.runs[0]?.['too_large'], 1)
  })
})
