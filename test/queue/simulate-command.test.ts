import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { UsageError } from '../../src/cli/command.ts'
import type { Replay, TimedArrivals } from '../../src/queue/commands/recorded-load.ts'
import { readOptions } from '../../src/queue/commands/simulate-options.ts'
import { simulation } from '../../src/queue/commands/simulate.ts'
import { plainView } from '../support/terminal.ts'

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

  it('has a default for every option', () => {
    const { flags, ...rest } = readOptions([])
    assert.equal(flags.values['json'], false)
    assert.deepEqual(rest, {
      seed: 1,
      replay: undefined,
      load: {
        process: 'poisson',
        requestsPerSecond: 1,
        burstSize: 20,
        durationMs: 600_000,
        inputTokens: { kind: 'long_tail', median: 400, p95: 3000 },
        maxTokens: { kind: 'fixed', tokens: 2048 },
        outputTokens: { kind: 'long_tail', median: 200, p95: 900 },
      },
      engine: { tokensPerSecond: 60, prefillTokensPerSecond: 5000, slowdown: 0.02 },
      batch: undefined,
      limits: [{ tokenBudget: 200_000, maxConcurrentRequests: 32, maxQueueDepth: 256, maxWaitMs: 120_000 }],
    })
    assert.deepEqual(readOptions(['--batch-lines', '5']).batch, { lines: 5, inputTokens: 400, outputTokens: 200 })
  })

  it('takes the least and the most of every option', () => {
    const { load, engine, batch } = readOptions(
      '--burst-size 0 --slowdown 0 --rate 1000 --duration 2000 --batch-lines 1 --batch-output 0'.split(' '),
    )
    assert.deepEqual([load.burstSize, engine.slowdown, load.durationMs, batch?.outputTokens], [1, 0, 2_000_000, 1])
    assert.throws(() => readOptions(['--rate', '1000.001', '--duration', '2000']), UsageError)
    const waits = Array.from({ length: 100 }, (_, index) => index)
    assert.equal(readOptions(['--max-wait-ms', waits.join()]).limits.length, 100)
    const { replay } = readOptions('--replay m --workspace w --from a --to b'.split(' '))
    assert.deepEqual(replay, { model: 'm', workspace: 'w', from: 'a', to: 'b' })
    assert.throws(() => readOptions(['--slowdown', '']), UsageError)
    for (const alone of ['--workspace w', '--to b', '--replay m --to b', '--tokens-per-second 0'])
      assert.throws(() => readOptions(alone.split(' ')), UsageError, alone)
  })

  it('prints every figure of a report as JSON', async () => {
    const { json } = await run('--arrivals constant --rate 1 --duration 4 --input 1 --max-tokens 9 --output 1 --json')
    const { runs, ...load } = JSON.parse(json) as { runs: [Record<string, unknown>] }
    assert.deepEqual(load, {
      duration_ms: 4000,
      engine: { tokens_per_second: 60, prefill_tokens_per_second: 5000, slowdown: 0.02 },
    })
    const { moments, wait_ms: waits, answer_ms: answers, ...figures } = runs[0]
    const workMs = (1 / 5000 + 1 / 60) * 1000
    const near = (actual: unknown, expected: number): void => assert.ok(Math.abs(Number(actual) - expected) < 1e-9)
    near(figures['concurrency_use'], (3 * workMs) / 4000 / 32)
    near(figures['budget_use'], (3 * 10 * workMs) / 4000 / 200_000)
    for (const [spread, ms] of [
      [waits, 0],
      [answers, workMs],
    ] as const) {
      assert.deepEqual(Object.keys(spread as object), ['mean', 'p50', 'p90', 'p95', 'p99', 'max'])
      for (const value of Object.values(spread as object)) near(value, ms)
    }
    assert.deepEqual(figures, {
      limits: { token_budget: 200_000, max_concurrent_requests: 32, max_queue_depth: 256, max_wait_ms: 120_000 },
      requests: 3,
      admitted_at_once: 3,
      admitted_after_wait: 0,
      queue_full: 0,
      model_overloaded: 0,
      too_large: 0,
      concurrency_use: figures['concurrency_use'],
      budget_use: figures['budget_use'],
      held_by_concurrency: 0,
      held_by_budget: 0,
      queue_depth_max: 0,
      output_tokens_per_second: 0.75,
      batch: null,
    })
    const [first, ...others] = moments as readonly object[]
    assert.deepEqual([first, others.length], [{ in_flight_requests: 0, committed_tokens: 0, queue_depth: 0 }, 59])
  })

  it('has no share of requests if there are none', async () => {
    const { output } = await run('--arrivals constant --rate 0.1 --duration 1')
    assert.match(output, /^ {2}queue_full +0 +0\.0 %$/m)
    assert.match(output, /^wait +no request was admitted$/m)
    assert.match(output, /^over 1\.0 s$/m)
    assert.doesNotMatch(output, /[▁▂▃▄▅▆▇█]/)
    for (const [seconds, words] of [
      [0.999, '999 ms'],
      [599.9, '599.9 s'],
      [600, '10.0 min'],
    ] as const) {
      const { output: longer } = await run(`--arrivals constant --rate 0.001 --duration ${seconds}`)
      assert.ok(longer.includes(`\nover ${words}\n`), words)
    }
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
