import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatLine } from '../support/batch-lines.ts'
import { reached, sdkOf, submit } from '../support/batches.ts'
import { heldBytes, nothingIsHeld } from '../support/held-bytes.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { eventually, gate } from '../support/waiting.ts'

/** What the consoles show of a batch while it runs and afterwards. */

interface Shown {
  readonly filename: string | null
  readonly status: string
  readonly amount: string
  readonly failures: readonly object[]
  readonly workspace: string
}

describe('the progress of a batch', () => {
  it('has what its lines cost, and its failures by kind, while it runs and after its end', async (t) => {
    const { weir, engine } = await sharedStage(t)
    const client = sdkOf(weir)
    const held = gate()
    engine.script = ({ rawBody }) =>
      rawBody.includes('Question bad')
        ? { refuse: { status: 400, body: { error: { message: 'no' } } } }
        : rawBody.includes('Question held')
          ? { hold: { afterTokens: 0, until: held.opened } }
          : {}
    const lines = [chatLine('a'), chatLine('bad-1'), chatLine('held'), chatLine('bad-2')]
    const { id } = await submit(client, lines)
    const shown = async (): Promise<Shown> =>
      (await (await weir.admin('GET', `/admin/v1/batches/${id}`)).json()) as Shown
    await eventually('three lines have ended', async () => {
      const { request_counts: counts } = await client.batches.retrieve(id)
      return counts !== undefined && counts.completed + counts.failed === 3
    })
    const failures = [{ code: 'invalid_value', count: 2, line: 2, custom_id: 'bad-1', message: 'no' }]
    // Rows reach the database after the answers.
    await eventually('the first line is paid for', async () => Number((await shown()).amount) > 0)
    const running = await shown()
    assert.equal(running.filename, 'in.jsonl')
    assert.equal(running.workspace, weir.workspace)
    assert.deepEqual(running.failures, failures)
    held.open()
    await reached(client, id, 'completed')
    // A second batch, whose lines must not count.
    const other = await submit(client, [chatLine('x')])
    await reached(client, other.id, 'completed')
    const rows = await weir.ledger()
    const ended = await shown()
    assert.deepEqual(ended.failures, failures)
    assert.equal((await weir.admin('POST', `/admin/v1/batches/${id}/cancel`)).status, 409)
    const own = rows.filter((row) => row.requestId.startsWith(`${id}-`))
    const total = own.reduce((sum, row) => sum + row.amount, 0n)
    assert.ok(total > 0n)
    assert.equal(BigInt(Math.round(Number(ended.amount) * 1e12)), total)
    assert.ok(Number(running.amount) < Number(ended.amount))
  })

  it('counts the memory of its lines with that of requests', async (t) => {
    const { weir, engine } = await sharedStage(t)
    const client = sdkOf(weir)
    const held = gate()
    engine.script = { hold: { afterTokens: 0, until: held.opened } }
    await nothingIsHeld(weir)
    const { id } = await submit(client, [chatLine('held')])
    await engine.arrived(1)
    assert.ok((await heldBytes(weir)) > 0)
    held.open()
    await reached(client, id, 'completed')
    await nothingIsHeld(weir)
  })

  it('lists the lines of a cancelled batch that were not run as failures of their own kind', async (t) => {
    const { weir, engine } = await sharedStage(t)
    const client = sdkOf(weir)
    const held = gate()
    engine.script = { hold: { afterTokens: 0, until: held.opened } }
    const { id } = await submit(
      client,
      Array.from({ length: 40 }, (_, index) => chatLine(index)),
    )
    await engine.arrived(1)
    const response = await weir.admin('POST', `/admin/v1/batches/${id}/cancel`)
    assert.equal(response.status, 200)
    held.open()
    const batch = await reached(client, id, 'cancelled')
    const { failures } = (await (await weir.admin('GET', `/admin/v1/batches/${id}`)).json()) as {
      failures: { code: string; count: number }[]
    }
    assert.deepEqual(
      failures.map(({ code, count }) => [code, count]),
      [['batch_cancelled', batch.request_counts?.failed]],
    )
    assert.equal((await weir.admin('GET', '/admin/v1/batches/batch_none')).status, 404)
  })

  it('is listed in pages, of all workspaces or of one', async (t) => {
    const { weir } = await sharedStage(t)
    const client = sdkOf(weir)
    const ids: string[] = []
    for (let each = 0; each < 3; each++) ids.unshift((await submit(client, [chatLine('a')])).id)
    const page = async (query: string): Promise<{ data: { id: string }[]; next: string | null }> =>
      (await (await weir.admin('GET', `/admin/v1/batches?limit=2&${query}`)).json()) as never
    const whose = `workspace=${weir.workspace}`
    const first = await page(whose)
    const second = await page(`${whose}&before=${first.next}`)
    assert.deepEqual(
      [...first.data, ...second.data].map((it) => it.id),
      ids,
    )
    assert.equal(second.next, null)
    assert.deepEqual(
      (await page('')).data.map((it) => it.id),
      ids.slice(0, 2),
    )
  })
})
