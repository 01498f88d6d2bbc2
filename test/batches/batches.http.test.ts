import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { chatLine } from '../support/batch-lines.ts'
import { linesIn, reached, sdkOf, submit } from '../support/batches.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { eventually, gate, type Gate } from '../support/waiting.ts'

async function stage(t: TestContext, options = {}) {
  const { weir, engine } = await sharedStage(t, options)
  return { weir, engine, client: sdkOf(weir) }
}

describe('a batch', () => {
  it('is submitted, run and read with the SDK of OpenAI', async (t) => {
    const { client, weir } = await stage(t)
    const created = await submit(client, [chatLine('a'), chatLine('b'), '', chatLine('c', { temperature: 0 })])
    assert.equal(created.object, 'batch')
    assert.equal((created.expires_at ?? 0) - created.created_at, 86_400)
    const batch = await reached(client, created.id, 'completed', 'failed')
    assert.equal(batch.status, 'completed', JSON.stringify(batch.errors))
    assert.deepEqual(batch.request_counts, { total: 3, completed: 3, failed: 0 })
    assert.equal(batch.error_file_id, null)
    assert.ok(batch.in_progress_at && batch.finalizing_at && batch.completed_at)
    const lines = await linesIn(client, batch.output_file_id)
    assert.deepEqual(
      lines.map((it) => it.custom_id),
      ['a', 'b', 'c'],
    )
    const rows = await weir.ledger()
    assert.deepEqual(new Set(rows.map((it) => it.requestId)), new Set(lines.map((it) => it.response?.request_id)))
    for (const { response, error } of lines) {
      assert.equal(error, null)
      assert.equal(response?.status_code, 200)
      const row = rows.find((it) => it.requestId === response.request_id)
      assert.equal(row?.outcome, 'completed')
      assert.equal(row.inputTokens, response.body.usage.prompt_tokens)
      assert.ok(row.amount > 0n)
    }
    const output = await client.files.retrieve(batch.output_file_id ?? '')
    assert.equal(output.purpose, 'batch_output')
    assert.deepEqual(
      (await client.batches.list()).data.map((it) => it.id),
      [batch.id],
    )
    const other = await stage(t)
    await assert.rejects(other.client.batches.retrieve(batch.id), { status: 404 })
    await assert.rejects(other.client.batches.cancel(batch.id), { status: 404 })
    await assert.rejects(client.batches.cancel(batch.id), { status: 409 })
  })

  it('[B3] names every bad line and runs none', async (t) => {
    const { client, weir, engine } = await stage(t)
    const { id } = await submit(client, [
      chatLine('good'),
      '{"custom_id": ',
      chatLine('good'),
      chatLine('', {}),
      chatLine('m', {}, { method: 'GET' }),
      chatLine('u', {}, { url: '/v1/embeddings' }),
      chatLine('n', { model: 'no/such' }),
      chatLine('s', { stream: true }),
      chatLine('t', { temperature: 9 }),
      { ...chatLine('x'), body: undefined },
      { ...chatLine('x'), custom_id: undefined },
      chatLine('ours', {}, { url: '/api/v1/chat/completions' }),
    ])
    const batch = await reached(client, id, 'failed')
    assert.deepEqual(
      batch.errors?.data?.map(({ line, code, param }) => [line, code, param]),
      [
        [2, 'invalid_json', null],
        [3, 'invalid_value', 'custom_id'],
        [4, 'invalid_value', 'custom_id'],
        [5, 'invalid_value', 'method'],
        [6, 'invalid_value', 'url'],
        [7, 'model_not_found', 'body.model'],
        [8, 'unsupported_value', 'body.stream'],
        [9, 'invalid_value', 'body.temperature'],
        [10, 'missing_required_parameter', 'body'],
        [11, 'missing_required_parameter', 'custom_id'],
      ],
    )
    assert.equal((batch.errors as { count?: number }).count, 10)
    assert.ok(batch.failed_at)
    assert.equal(engine.calls.length, 0)
    assert.deepEqual(await weir.ledger(), [])
  })

  it('lists at most 1000 bad lines, with their number', async (t) => {
    const { client } = await stage(t)
    const { id } = await submit(
      client,
      Array.from({ length: 1200 }, () => '{}'),
    )
    const batch = await reached(client, id, 'failed')
    assert.equal(batch.errors?.data?.length, 1000)
    assert.equal((batch.errors as { count?: number }).count, 1200)
  })

  it('has the lines that an engine refuses in its error file', async (t) => {
    const { client, engine } = await stage(t)
    engine.script = ({ rawBody }) =>
      rawBody.includes('Question bad') ? { refuse: { status: 400, body: { error: { message: 'no' } } } } : {}
    const { id } = await submit(client, [chatLine('good'), chatLine('bad')])
    const batch = await reached(client, id, 'completed')
    assert.deepEqual(batch.request_counts, { total: 2, completed: 1, failed: 1 })
    const [line, ...others] = await linesIn(client, batch.error_file_id)
    assert.deepEqual(others, [])
    assert.equal(line?.custom_id, 'bad')
    assert.equal(line.response?.status_code, 400)
    assert.ok(line.response.body.error?.code)
  })

  it('tries again when an engine fails', async (t) => {
    const { client, engine, weir } = await stage(t)
    let calls = 0
    engine.script = () => (++calls === 1 ? { refuse: { status: 500, body: {} } } : {})
    const { id } = await submit(client, [chatLine('a')])
    const batch = await reached(client, id, 'completed')
    assert.deepEqual(batch.request_counts, { total: 1, completed: 1, failed: 0 })
    const billed = (await weir.ledger()).filter((it) => it.amount > 0n)
    assert.equal(billed.length, 1)
  })

  it('is cancelled: lines that run finish, and the others are in the error file', async (t) => {
    const { client, engine, weir } = await stage(t)
    const held = gate()
    engine.script = { hold: { afterTokens: 0, until: held.opened } }
    const { id } = await submit(
      client,
      Array.from({ length: 40 }, (_, index) => chatLine(index)),
    )
    await engine.arrived(1)
    const cancelling = await client.batches.cancel(id)
    assert.equal(cancelling.status, 'cancelling')
    const running = engine.calls.length
    held.open()
    const batch = await reached(client, id, 'cancelled')
    const [answers, failures] = [
      await linesIn(client, batch.output_file_id),
      await linesIn(client, batch.error_file_id),
    ]
    assert.ok(answers.length >= running && failures.length > 0)
    assert.deepEqual(
      new Set([...answers, ...failures].map((it) => it.custom_id)),
      new Set(Array.from({ length: 40 }, (_, index) => String(index))),
    )
    assert.equal(answers.length + failures.length, 40)
    for (const it of failures) assert.equal(it.error?.code, 'batch_cancelled')
    assert.equal((await weir.ledger()).filter((it) => it.amount > 0n).length, answers.length)
  })

  it('gives way to an online request: its line is aborted, not billed, and run again, at the batch price', async (t) => {
    const pricing = { input_per_million: '2', output_per_million: '4', batch: '0.5' }
    const { client, engine, weir } = await stage(t, { model: { pricing }, limits: { max_concurrent_requests: 1 } })
    const held = gate()
    engine.script = ({ rawBody }) =>
      rawBody.includes('Question') ? { hold: { afterTokens: 0, until: held.opened } } : { tokens: ['Hi'] }
    const { id } = await submit(client, [chatLine('a')])
    await engine.arrived(1)
    const status = (await (await weir.call('/queue/status')).json()) as {
      data: { committed_tokens: number; batch?: object }[]
    }
    const [lane] = status.data
    const { committed_tokens } = lane ?? assert.fail()
    assert.deepEqual(lane?.batch, { in_flight_requests: 1, committed_tokens, queue_depth: 0 })
    assert.equal((await weir.chat({})).status, 200)
    held.open()
    const batch = await reached(client, id, 'completed')
    const [line] = await linesIn(client, batch.output_file_id)
    const rows = await weir.ledger()
    assert.equal(rows.length, 2)
    const row = rows.find(({ requestId }) => requestId === line?.response?.request_id)
    assert.equal(row?.tier, 'batch')
    assert.equal(row.amount, BigInt(row.inputTokens) * 1_000_000n + BigInt(row.outputTokens) * 2_000_000n)
    assert.ok(engine.calls.length >= 3)
  })

  it('[B1] never makes an online request wait for a line that started after it arrived', async (t) => {
    const batchLimits = { preempt: false, reserve_concurrent: 0 }
    const { client, engine, weir } = await stage(t, { limits: { max_concurrent_requests: 2, batch: batchLimits } })
    const running = { lines: [] as Gate[], online: [] as Gate[] }
    engine.script = ({ rawBody }) => {
      const held = gate()
      running[rawBody.includes('Question') ? 'lines' : 'online'].push(held)
      return { hold: { afterTokens: 0, until: held.opened } }
    }
    const { id } = await submit(
      client,
      Array.from({ length: 9 }, (_, index) => chatLine(index)),
    )
    await engine.arrived(2)
    for (let calls = 2; calls < 8; calls += 2) {
      const answer = weir.chat({})
      await eventually('the online request waits', async () => {
        const { data } = (await (await weir.call('/queue/status')).json()) as { data: { queue_depth: number }[] }
        return data[0]?.queue_depth === 1
      })
      running.lines.shift()!.open()
      await engine.arrived(calls + 1)
      assert.equal(running.online.length, 1, 'the online request has the place, and no line')
      running.online.shift()!.open()
      assert.equal((await answer).status, 200)
      await engine.arrived(calls + 2)
    }
    engine.script = {}
    for (const line of running.lines) line.open()
    await reached(client, id, 'completed')
  })

  it('is cancelled at once while a line waits again that gave way to an online request', async (t) => {
    const { client, engine, weir } = await stage(t, { limits: { max_concurrent_requests: 1 } })
    const [line, online] = [gate(), gate()]
    t.after(() => {
      line.open()
      online.open()
    })
    engine.script = ({ rawBody }) => ({
      hold: { afterTokens: 0, until: rawBody.includes('Question') ? line.opened : online.opened },
    })
    const { id } = await submit(client, [chatLine('a')])
    await engine.arrived(1)
    const answer = weir.chat({})
    await engine.arrived(2)
    await client.batches.cancel(id)
    const batch = await reached(client, id, 'cancelled')
    const [refused] = await linesIn(client, batch.error_file_id)
    assert.equal(refused?.error?.code, 'batch_cancelled')
    online.open()
    assert.equal((await answer).status, 200)
    assert.deepEqual(
      new Set((await weir.ledger()).map(({ tier, outcome, amount }) => `${tier} ${outcome} ${amount > 0n}`)),
      new Set(['batch interrupted false', 'default completed true']),
    )
  })

  it('is counted as a batch in sums, at the normal price, if its model has no batch price', async (t) => {
    const { client, weir } = await stage(t, { config: {}, model: { pricing: { input_per_million: '3' } } })
    const { id } = await submit(client, [chatLine('a'), chatLine('b')])
    await reached(client, id, 'completed')
    assert.equal((await weir.chat({})).status, 200)
    const rows = await weir.ledger()
    for (const row of rows) assert.equal(row.amount, BigInt(row.inputTokens) * 3_000_000n)
    const usage = (await (await weir.call('/usage?group_by=service_tier')).json()) as {
      data: { service_tier: string; requests: number }[]
    }
    assert.deepEqual(
      usage.data.map((it) => [it.service_tier, it.requests]),
      [
        ['batch', 2],
        ['default', 1],
      ],
    )
    const listed = (await (await weir.call('/models')).json()) as { data: { pricing: { batch: unknown } }[] }
    assert.equal(listed.data[0]?.pricing.batch, null)
  })

  it('does not count for the rate limit', async (t) => {
    const { client, weir } = await stage(t)
    await weir.admin('PATCH', `/admin/v1/workspaces/${weir.workspace}`, { tokens_per_minute: 1 })
    const before = (await client.models.list().withResponse()).response.headers.get('x-ratelimit-remaining')
    const { id } = await submit(
      client,
      Array.from({ length: 20 }, (_, index) => chatLine(index)),
    )
    const limit = (await weir.call('/models')).headers
    await eventually(
      'it ends',
      async () => {
        const row = await weir.ledger()
        return row.length === 20
      },
      60_000,
    )
    assert.equal(limit.get('x-ratelimit-remaining-tokens'), '1')
    const after = (await weir.call('/models')).headers
    assert.equal(after.get('x-ratelimit-remaining-tokens'), '1')
    assert.ok(Number(before) - Number(after.get('x-ratelimit-remaining')) < 10)
    await reached(client, id, 'completed')
  })

  it('refuses an unknown file, endpoint or window', async (t) => {
    const { client } = await stage(t)
    const file = (await submit(client, [chatLine('a')])).input_file_id
    const create = (changes: object) =>
      client.batches.create({
        input_file_id: file,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
        ...changes,
      })
    await assert.rejects(create({ input_file_id: 'file-x' }), { status: 400, param: 'input_file_id' })
    await assert.rejects(create({ endpoint: '/v1/images/generations' }), { status: 400, param: 'endpoint' })
    await assert.rejects(create({ completion_window: '1h' }), { status: 400, param: 'completion_window' })
    const metadata = { team: 'a' }
    const batch = await create({ metadata, endpoint: '/api/v1/chat/completions' })
    assert.deepEqual(batch.metadata, metadata)
    assert.equal(batch.endpoint, '/v1/chat/completions')
    await reached(client, batch.id, 'completed')
  })
})
