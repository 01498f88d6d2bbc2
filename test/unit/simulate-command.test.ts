import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { simulate } from '../../src/commands/simulate.ts'
import type { Recording } from '../../src/commands/simulate.ts'

async function run(t: TestContext, args: string, recording?: (period: string) => Promise<Recording>) {
  const output = t.mock.method(console, 'log', () => {})
  const errors = t.mock.method(console, 'error', () => {})
  const code = await simulate(args.split(' '), recording)
  return { code, output: said(output.mock.calls), errors: said(errors.mock.calls) }
}

function said(calls: readonly { arguments: unknown[] }[]): string {
  return calls.map((call) => String(call.arguments[0])).join('\n')
}

describe('weir simulate', () => {
  it('[Q7] prints waits, refusals, use and a chart for one set of limits', async (t) => {
    const { code, output } = await run(t, '--rate 6 --duration 300 --max-concurrent-requests 8 --max-queue-depth 50')
    assert.equal(code, 0)
    for (const part of ['max wait 120.0 s', 'queue_full', 'wait     p50', 'in use   concurrency', '█', 'of 50']) {
      assert.ok(output.includes(part), `${part} in\n${output}`)
    }
  })

  it('[Q7] compares lists of limits on the same load, a line each', async (t) => {
    const { output } = await run(t, '--duration 60 --max-concurrent-requests 4,8,16 --token-budget 20000,40000')
    const lines = output.split('\n')
    assert.equal(lines.length, 1 + 6)
    assert.equal(new Set(lines.map((line) => line.length)).size, 1)
  })

  it('[Q7] gives one JSON object that repeats for the same seed', async (t) => {
    const first = await run(t, '--json --seed 5')
    const again = await run(t, '--json --seed 5')
    const other = await run(t, '--json --seed 6')
    assert.equal(first.output, again.output)
    assert.notEqual(first.output, other.output)
    const { runs } = JSON.parse(first.output)
    assert.equal(runs.length, 1)
    assert.ok(runs[0].requests > 500)
  })

  it('[Q7] replays recorded arrivals, whatever order they are given in', async (t) => {
    const periods: string[] = []
    const request = { inputTokens: 100, maxTokens: 100, outputTokens: 60 }
    const recording = async (period: string): Promise<Recording> => {
      periods.push(period)
      return {
        durationMs: 2000,
        arrivals: [
          { ...request, atMs: 900 },
          { ...request, atMs: 0 },
        ],
      }
    }
    const { output } = await run(t, '--json --replay 2026-07 --max-concurrent-requests 1', recording)
    const [report] = JSON.parse(output).runs
    assert.deepEqual(periods, ['2026-07'])
    assert.equal(report.requests, 2)
    assert.equal(Math.round(report.waitMs.max), 120)
  })

  it('explains itself', async (t) => {
    const { code, output } = await run(t, '--help')
    assert.equal(code, 0)
    assert.match(output, /--max-concurrent-requests/)
  })

  it('refuses what makes no sense, and says what', async (t) => {
    const wrong = {
      '--rate 0': /--rate must be/,
      '--rate fast': /--rate must be/,
      '--slowdown -1': /slowdown/,
      '--input 5-1': /--input must be like/,
      '--arrivals sometimes': /--arrivals must be/,
      '--token-budget 1.5': /--token-budget must be a whole number/,
      '--rate 1000000': /must not exceed/,
      '--seed 1,2': /--seed must be a whole number/,
      '--replay 2026-07': /--replay needs a ledger/,
      '--unknown': /--unknown/,
      [`--max-wait-ms ${Array.from({ length: 101 }, (_, index) => index).join(',')}`]: /101 combinations/,
    }
    for (const [args, message] of Object.entries(wrong)) {
      const { code, errors } = await run(t, args)
      assert.equal(code, 2, args)
      assert.match(errors, message)
    }
  })
})

it('[Q7] the guide to choosing limits shows what its commands print', async (t) => {
  const guide = await readFile(new URL('../../docs/guides/choosing-limits.md', import.meta.url), 'utf8')
  const examples = [...guide.matchAll(/```sh\nweir simulate (.+)\n```\n\n```text\n([^`]+)\n```/g)]
  assert.equal(examples.length, 5)
  for (const [, args = '', shown] of examples) {
    const { output } = await run(t, args)
    assert.equal(output, shown)
  }
})
