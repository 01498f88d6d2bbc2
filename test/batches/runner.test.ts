import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import type { Batch, BatchPause, BatchStore, ClaimedRange } from '../../src/batches/batch-store.ts'
import type { BatchFiles } from '../../src/batches/files.ts'
import { openRunner, type RunnerParts } from '../../src/batches/runner.ts'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import { chatLine } from '../support/batches.ts'
import { turn } from '../support/hand-clock.ts'
import { gate } from '../support/waiting.ts'

const NOW = 1000
const MIB = 2 ** 20
const batchOf = (id: string): Batch =>
  ({ id, workspaceId: 'ws_1', keyId: 'key', endpoint: '/v1/chat/completions' }) as Batch
const rangeOf = (lines: number, byteEnd = 1000, batchId = 'batch_1'): ClaimedRange => ({
  batchId,
  firstLine: 1,
  lines,
  byteStart: 0,
  byteEnd,
  claims: 1,
})

/** A runner whose timers never ring. A range is free again once it is released. */
function stage(
  ranges: readonly ClaimedRange[],
  file: () => Readable,
  { store: changedStore, ...changes }: Partial<Omit<RunnerParts, 'store'>> & { store?: Partial<BatchStore> } = {},
) {
  const seen = { claims: 0, ended: 0, released: 0, pauses: [] as object[], failures: [] as string[] }
  const free = [...ranges]
  const store: Partial<BatchStore> = {
    runnableBatches: async () => free.map(({ batchId }) => batchOf(batchId)),
    async claimRange({ id }) {
      await turn()
      seen.claims++
      return free.splice(
        free.findIndex(({ batchId }) => batchId === id),
        1,
      )[0]
    },
    results: async () => [],
    async releaseRange(range) {
      seen.released++
      free.push(range)
    },
    endRange: async () => void seen.ended++,
    pauseBatch: async (_id, pause: BatchPause, resumeAt) => void seen.pauses.push({ ...pause, resumeAt }),
    ...changedStore,
  }
  const files: Partial<BatchFiles> = { place: 'here', file: async () => ({}) as never, read: async () => file() }
  const parts: Partial<RunnerParts> = {
    store: store as BatchStore,
    files: files as BatchFiles,
    memory: byteBudget(1e9),
    owner: '',
    running: new Set(),
    clock: { now: () => NOW, after: () => () => {} } as never,
    maxInFlight: 8,
    callerOf: async () => ({ workspace: { id: 'ws_1' }, keyId: 'key' }) as never,
    isDraining: () => false,
    failed: ({ message }) => void seen.failures.push(message),
    leftMs: () => 0,
    ...changes,
  }
  return { seen, free, runner: openRunner(parts as RunnerParts, () => {}) }
}

const linesOf = (count: number) => (): Readable =>
  Readable.from(Array.from({ length: count }, (_, index) => Buffer.from(`${JSON.stringify(chatLine(index))}\n`)))

/** More than enough for every promise that no timer holds up. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 30; turns++) await turn()
}

describe('a range of lines', () => {
  it('whose input cannot be read pauses its batch with the reason, and is not claimed again at once', async () => {
    const { seen, runner } = stage([rangeOf(2)], () => {
      throw new Error('the file storage answered with status 503')
    })
    runner.wake()
    await settled()
    assert.deepEqual([seen.claims, seen.released], [1, 1])
    assert.deepEqual(seen.failures, ['the file storage answered with status 503'])
    assert.deepEqual(seen.pauses, [
      { code: 'service_unavailable', message: 'The input file cannot be read now.', since: NOW, resumeAt: NOW + 5000 },
    ])
    await runner.close()
  })

  it('is released if the service drains before all of its lines have begun', async () => {
    const state = { isDraining: false }
    const engine = Promise.withResolvers<void>()
    const run: string[] = []
    const { seen, runner } = stage([rangeOf(2)], linesOf(2), {
      maxInFlight: 1,
      isDraining: () => state.isDraining,
      endpoints: { jobOf: async () => ({ answer: { kind: 'whole', read: async () => {} } }) } as never,
      async pipeline(_job, _caller, { requestId }) {
        run.push(requestId)
        await engine.promise
      },
    })
    runner.wake()
    await settled()
    assert.deepEqual(run, ['batch_1-1-1-1'])
    state.isDraining = true
    engine.resolve()
    await settled()
    assert.deepEqual([run.length, seen.ended, seen.released], [1, 0, 1])
    await runner.close()
  })

  it('is not stopped by a renewal that began before it was claimed', async () => {
    const [engine, renewing] = [gate(), gate()]
    const { seen, free, runner } = stage([rangeOf(1, 1000, 'one')], linesOf(1), {
      endpoints: { jobOf: async () => ({ answer: { kind: 'whole', read: async () => {} } }) } as never,
      pipeline: () => engine.opened,
      store: {
        renewRanges: async () => {},
        async batchesInProgress(ids) {
          await renewing.opened
          return ids
        },
      },
    })
    runner.wake()
    await settled()
    const renewed = runner.refresh()
    free.push(rangeOf(1, 1000, 'two'))
    runner.wake()
    await settled()
    assert.equal(seen.claims, 2)
    renewing.open()
    await renewed
    engine.open()
    await settled()
    assert.deepEqual([seen.ended, seen.released], [2, 0])
    await runner.close()
  })

  it('is not claimed while others hold as many bytes as may be in memory', async () => {
    const reading = Promise.withResolvers<never>()
    const files = { place: 'here', file: () => reading.promise } as unknown as BatchFiles
    const ranges = ['one', 'two', 'three', 'four'].map((id) => rangeOf(1, 40 * MIB, id))
    const { seen, runner } = stage(ranges, linesOf(1), { files })
    runner.wake()
    await settled()
    assert.equal(seen.claims, 2)
    reading.reject(new Error('over'))
    await runner.close()
  })
})
