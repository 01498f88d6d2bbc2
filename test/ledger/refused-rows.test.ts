import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RefusedWrite } from '../../src/shared/refused-write.ts'
import { retryRefusedRows } from '../../src/ledger/refused-rows.ts'
import { sampleRow } from '../support/ledger-samples.ts'

const setAside = (id: string, isReadable = true) => ({
  requestId: id,
  workspaceId: 'ws_1',
  reason: 'no such month',
  refusedAt: 0,
  row: isReadable ? sampleRow(id) : undefined,
})

describe('rows that were set aside', () => {
  it('are tried again at a start, 10,000 at most, and those that are still refused are counted', async () => {
    const limits: number[] = []
    const added: string[] = []
    const result = await retryRefusedRows({
      refusedRows: async (limit) => {
        limits.push(limit)
        return [setAside('a'), setAside('b'), setAside('c', false)]
      },
      addRefused: async (rows) => {
        await new Promise((resolve) => setImmediate(resolve))
        if (rows.some(({ requestId }) => requestId === 'b')) throw new RefusedWrite('no such month')
        added.push(...rows.map(({ requestId }) => requestId))
      },
    })
    assert.deepEqual(result, { added: 1, refused: 2 })
    assert.deepEqual([limits, added], [[10_000], ['a']])
  })

  it('are not queried again if there are none', async () => {
    const store = { refusedRows: async () => [], addRefused: () => assert.fail() }
    assert.deepEqual(await retryRefusedRows(store), { added: 0, refused: 0 })
  })

  it('stay if the store fails: the start fails too', async () => {
    const store = {
      refusedRows: async () => [setAside('a')],
      addRefused: () => Promise.reject(new Error('the database is locked')),
    }
    await assert.rejects(retryRefusedRows(store), /locked/)
  })
})
