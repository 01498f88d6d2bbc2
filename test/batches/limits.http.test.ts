import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { chatLine } from '../support/batch-lines.ts'
import { linesIn, reached, sdkOf, submit } from '../support/batches.ts'
import { chatStage } from '../support/chat-stage.ts'
import { cli } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { eventually, gate } from '../support/waiting.ts'

const LONG_MS = 60_000

describe('a batch of a workspace', () => {
  it('pauses at the spend limit with a reason, and resumes when the limit is raised', async (t) => {
    const { weir, engine } = await sharedStage(t)
    const client = sdkOf(weir)
    const held = gate()
    engine.script = ({ rawBody }) =>
      rawBody.includes('Question held') ? { hold: { afterTokens: 0, until: held.opened } } : {}
    const limit = (amount: string) =>
      weir.admin('PATCH', `/admin/v1/workspaces/${weir.workspace}`, { spend_limit: amount, spend_limit_kind: 'hard' })
    assert.equal((await limit('0.0000001')).status, 200)
    const { id } = await submit(client, [chatLine('a'), chatLine('held')])
    const pausedBy = async (): Promise<string | undefined> =>
      ((await client.batches.retrieve(id)) as { paused?: { code: string } }).paused?.code
    await eventually('it is paused', async () => (await pausedBy()) === 'spend_limit_exceeded', LONG_MS)
    assert.deepEqual(await weir.ledger(), [])
    await limit('100')
    await eventually('it goes on', async () => (await pausedBy()) === undefined, LONG_MS)
    assert.equal((await client.batches.retrieve(id)).status, 'in_progress')
    held.open()
    const batch = await reached(client, id, 'completed')
    assert.equal(batch.request_counts?.completed, 2)
  })

  it('fails when its key is revoked, with the results so far', async (t) => {
    const { weir, engine } = await sharedStage(t, { limits: { max_concurrent_requests: 2 } })
    const created = await weir.admin('POST', '/admin/v1/keys', { workspace: weir.workspace })
    const { id: keyId, key } = (await created.json()) as { id: string; key: string }
    const held = gate()
    engine.script = { hold: { afterTokens: 0, until: held.opened } }
    const lines = Array.from({ length: 40 }, (_, index) => chatLine(index))
    const { id } = await submit(sdkOf({ ...weir, key }), lines)
    await engine.arrived(1)
    assert.equal((await weir.admin('DELETE', `/admin/v1/keys/${keyId}`)).status, 200)
    const client = sdkOf(weir)
    await reached(client, id, 'finalizing')
    held.open()
    const batch = await reached(client, id, 'failed')
    assert.equal(batch.errors?.data?.[0]?.code, 'invalid_api_key')
    const [answers, failures] = [
      await linesIn(client, batch.output_file_id),
      await linesIn(client, batch.error_file_id),
    ]
    assert.equal(answers.length + failures.length, 40)
    assert.ok(answers.length > 0 && failures.length > 0)
    assert.ok(failures.every((it) => it.error?.code === 'batch_failed'))
  })

  it('may have so many lines, and keeps its input file until it has ended', async (t) => {
    const { weir, engine } = await chatStage(t, { config: { batches: { max_queued_lines: 5, max_in_flight: 2 } } })
    const client = sdkOf(weir)
    const held = gate()
    engine.script = { hold: { afterTokens: 0, until: held.opened } }
    const lines = (count: number) => Array.from({ length: count }, (_, index) => chatLine(index))
    const first = await submit(client, lines(4))
    await engine.arrived(2)
    const second = await reached(client, (await submit(client, lines(2))).id, 'failed')
    assert.equal(second.errors?.data?.[0]?.code, 'quota_exceeded')
    const third = await submit(client, lines(1))
    await eventually(
      'its lines are known',
      async () => (await client.batches.retrieve(third.id)).status === 'in_progress',
      LONG_MS,
    )
    await assert.rejects(submit(client, lines(1)), { status: 403, code: 'quota_exceeded' })
    await assert.rejects(client.files.delete(first.input_file_id), { status: 409 })
    held.open()
    await reached(client, first.id, 'completed')
    await reached(client, third.id, 'completed')
    assert.equal(engine.maxRunning, 2)
    await client.files.delete(first.input_file_id)
  })
})

describe('weir batch', () => {
  it('submits a file, waits, and prints the results', async (t) => {
    const { weir } = await chatStage(t)
    const file = join(weir.dataDir, 'in.jsonl')
    writeFileSync(file, [chatLine('a'), chatLine('b')].map((it) => JSON.stringify(it)).join('\n'))
    const run = (...args: string[]) =>
      commandLine(['batch', ...args, '--config', weir.configFile, '--data', weir.dataDir])
    const submitted = await run('submit', file, '--wait', '--json')
    assert.equal(submitted.code, 0, submitted.stderr)
    const batch = JSON.parse(submitted.stdout) as { id: string; status: string }
    assert.equal(batch.status, 'completed')
    assert.match((await run('status', batch.id)).stdout, /completed: 2 of 2 lines completed, 0 failed/)
    const output = join(weir.dataDir, 'out.jsonl')
    assert.equal((await run('results', batch.id, '--output', output)).code, 0)
    // A process of its own, because the results are streamed to its output.
    const printed = await cli(['batch', 'results', batch.id, '--url', weir.service.url, '--key', weir.key])
    assert.equal(printed.stdout, readFileSync(output, 'utf8'))
    assert.deepEqual(
      printed.stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { custom_id: string }).custom_id),
      ['a', 'b'],
    )
    writeFileSync(file, '{}\n')
    const wrong = await run('submit', file, '--wait')
    assert.equal(wrong.code, 1)
    assert.match(wrong.stdout, /line 1: custom_id: Missing required parameter/)
  })
})
