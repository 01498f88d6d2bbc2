import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../src/shared/errors.ts'
import { UsageError } from '../../src/cli/command.ts'
import { booksStage, price, MARCH, SLUG } from '../support/books-stage.ts'

describe('weir simulate --replay', () => {
  const at = (ms: number): string => new Date(MARCH + ms).toISOString()

  it('replays every request that arrived in the period, however many, with the time and sizes of each', async (t) => {
    const { books, run } = await booksStage(t)
    const acme = await books.workspace('acme')
    const version = await price(books)
    const row = await books.row(acme, SLUG, version, MARCH, { inputTokens: 10, outputTokens: 6 })
    // More than a page, with 3 ms between them.
    const rows = Array.from({ length: 20_001 }, (_, index) => ({
      ...row,
      requestId: `request-${String(index).padStart(9, '0')}`,
      startedAt: MARCH + 3 * index,
      maxTokens: 30,
    }))
    await books.settle(rows)
    const options = `--max-concurrent-requests 1 --max-queue-depth 100000 --max-wait-ms 1000000000 --tokens-per-second 1000 --prefill-tokens-per-second 1000000 --json`
    const report = async (from: string, to: string) => {
      const { stdout, failure } = await run(`simulate --replay ${SLUG} --from ${from} --to ${to} ${options}`)
      assert.equal(failure, undefined)
      return JSON.parse(stdout) as { duration_ms: number; runs: [{ requests: number; wait_ms: { max: number } }] }
    }
    const all = await report(at(0), at(100_000))
    assert.deepEqual([all.duration_ms, all.runs[0].requests], [100_000, 20_001])
    // Each takes 6.01 ms, 3.01 ms longer than until the next one arrives.
    assert.equal(Math.round(all.runs[0].wait_ms.max), 60_200)
    const some = await report(at(3), at(9))
    assert.deepEqual([some.duration_ms, some.runs[0].requests], [6, 2], 'the end is not part of the period')
    const today = await report(at(0), '2999-01-01')
    assert.ok(today.duration_ms < Date.now(), 'what is still to come does not count as idle')
  })

  it('refuses what the ledger cannot replay', async (t) => {
    const { failed } = await booksStage(t)
    const period = `--from ${at(0)} --to ${at(1)}`
    for (const [args, kind, message] of [
      [`none ${period}`, ApiError, "The model 'none' is not in the catalog."],
      [`test-8b ${period}`, UsageError, `the ledger has no requests to ${SLUG} in this period`],
      [`${SLUG} --workspace acme ${period}`, UsageError, `${SLUG} has no capacity reserved for acme`],
      [`${SLUG} --from ${at(1)} --to ${at(1)}`, UsageError, '--from must be before --to, and in the past'],
      [`${SLUG} --from 2999-01-01 --to 2999-01-02`, UsageError, '--from must be before --to, and in the past'],
    ] as const) {
      assert.deepEqual(await failed(`simulate --replay ${args}`), [kind, message], args)
    }
  })
})
