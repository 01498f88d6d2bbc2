import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { UsageError } from '../../src/cli/command.ts'
import type { Replay, TimedArrivals } from '../../src/queue/commands/recorded-load.ts'
import { readOptions } from '../../src/queue/commands/simulate-options.ts'
import { simulation } from '../../src/queue/commands/simulate.ts'
import { plainView } from '../../src/cli/terminal/view.ts'

async function run(args: string, readRecorded: (replay: Replay) => Promise<TimedArrivals> = noLedger) {
  const { data, text } = await simulation(readOptions(args.split(' ')), readRecorded)
  return { json: JSON.stringify(data), output: text(plainView(80)) }
}

async function noLedger(): Promise<never> {
  throw new Error('a synthetic load must not read the ledger')
}

describe('weir simulate', () => {
  it('[Q7] prints waits, refusals, utilisation and a chart for one set of limits', async () => {
    const { output } = await run('--rate 6 --duration 300 --max-concurrent-requests 8 --max-queue-depth 50')
    for (const part of ['max wait 120.0 s', 'queue_full', 'wait     p50', 'in use   concurrency', '█', 'of 50']) {
      assert.ok(output.includes(part), `${part} in\n${output}`)
    }
  })

  it('[Q7] compares lists of limits on the same load, one line for each combination', async () => {
    const { output } = await run('--duration 60 --max-concurrent-requests 4,8,16 --token-budget 20000,40000')
    const [same, , ...lines] = output.split('\n')
    assert.equal(same, 'The same for all: queue 256, max wait 120.0 s')
    const table = lines.slice(0, lines.indexOf(''))
    assert.equal(table.length, 1 + 6)
    assert.equal(new Set(table.map((line) => line.length)).size, 1)
    assert.match(table[0] ?? '', /^ *TOKENS  AT ONCE  WAIT P50 .* TOKENS\/S$/)
  })

  it('[Q7] prints one JSON object that is the same for the same seed', async () => {
    const first = await run('--json --seed 5')
    const again = await run('--json --seed 5')
    const other = await run('--json --seed 6')
    assert.equal(first.json, again.json)
    assert.notEqual(first.json, other.json)
    const { runs } = JSON.parse(first.json)
    assert.equal(runs.length, 1)
    assert.ok(runs[0].requests > 500)
    const { requests, admitted_at_once, admitted_after_wait, queue_full, model_overloaded, too_large } = runs[0]
    assert.equal(admitted_at_once + admitted_after_wait + queue_full + model_overloaded + too_large, requests)
  })

  it('compares the load with and without batch work, and counts the lines that fit', async () => {
    const all = await run('--duration 60 --batch-lines all')
    assert.match(all.output, /WITHOUT +WITH BATCH\n/)
    assert.match(all.output, /online wait, p95 +0 ms +0 ms\n/)
    assert.match(
      all.output,
      /\n[\d,]+ lines fit, [\d,]+ a day\. \d+ were aborted for online requests, and run again\.$/,
    )
    const [without, withBatch] = JSON.parse(all.json).runs
    assert.equal(without.batch, null)
    assert.ok(withBatch.batch.lines > 100)
    assert.equal(withBatch.batch.lines_per_day, withBatch.batch.lines * 1440)
    assert.ok(withBatch.concurrency_use > 2 * without.concurrency_use)
    const some = await run('--duration 60 --batch-lines 7 --batch-input 10 --batch-output 10')
    assert.match(some.output, /\n7 of 7 lines fit\. /)
    const large = await run('--duration 60 --batch-lines all --batch-output 199000')
    assert.match(large.output, /\nNo line fits: /)
    assert.throws(() => readOptions(['--batch-lines', 'many']), UsageError)
    assert.throws(() => readOptions(['--batch-lines', 'all', '--max-wait-ms', '1,2']), UsageError)
  })

  it('[Q7] replays recorded arrivals, whatever order they are in', async () => {
    const replays: Replay[] = []
    const request = { inputTokens: 100, maxTokens: 100, outputTokens: 60 }
    const readRecorded = async (replay: Replay): Promise<TimedArrivals> => {
      replays.push(replay)
      return {
        durationMs: 2000,
        arrivals: [
          { ...request, atMs: 900 },
          { ...request, atMs: 0 },
        ],
      }
    }
    const { json } = await run(
      '--replay llama-8b --from 2026-07-01 --to 2026-07-02 --max-concurrent-requests 1',
      readRecorded,
    )
    const [report] = JSON.parse(json).runs
    assert.deepEqual(replays, [{ model: 'llama-8b', workspace: undefined, from: '2026-07-01', to: '2026-07-02' }])
    assert.equal(report.requests, 2)
    assert.equal(Math.round(report.wait_ms.max), 120)
  })

  it('refuses invalid options and names them', () => {
    const wrong = {
      '--rate 0': /--rate must be/,
      '--rate fast': /--rate must be/,
      '--slowdown -1': /slowdown/,
      '--input 5-1': /--input must be a size such as/,
      '--arrivals sometimes': /--arrivals must be/,
      '--token-budget 1.5': /--token-budget must be a whole number/,
      '--rate 1000000': /must be at most 2000000 requests/,
      '--seed 1,2': /--seed must be a whole number/,
      '--replay llama-8b': /--replay needs a period/,
      '--from 2026-07-01': /need --replay/,
      '--unknown': /--unknown/,
      [`--max-wait-ms ${Array.from({ length: 101 }, (_, index) => index).join(',')}`]:
        /at most 100 combinations of limits are allowed, but there are 101/,
    }
    for (const [args, message] of Object.entries(wrong)) {
      assert.throws(
        () => readOptions(args.split(' ')),
        (error) => error instanceof UsageError && message.test(error.message),
        args,
      )
    }
  })
})

it('[Q7] the guide to choosing limits shows the real output of its commands', async () => {
  const guide = await readFile(new URL('../../docs/guides/choosing-limits.md', import.meta.url), 'utf8')
  const examples = [...guide.matchAll(/```sh\nweir simulate (.+)\n```\n\n```text\n([^`]+)\n```/g)]
  assert.equal(examples.length, 5)
  for (const [, args = '', shown] of examples) {
    const { output } = await run(args)
    assert.equal(output, shown)
    for (const line of output.split('\n')) assert.ok(line.length <= 80, `too wide: ${line}`)
  }
})
