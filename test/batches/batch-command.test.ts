import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { batch } from '../../src/batches/commands/batch.ts'
import { UsageError } from '../../src/cli/command.ts'
import { printed } from '../support/printed.ts'
import { scriptedService } from '../support/scripted-service.ts'
import { eventually } from '../support/waiting.ts'

/** weir batch, at a service whose answers a test gives. */

const ended = {
  id: 'batch_1',
  status: 'completed',
  request_counts: { total: 3, completed: 2, failed: 1 },
  paused: null,
  errors: null,
  output_file_id: 'file-out',
  error_file_id: 'file-err',
}

async function stage(t: TestContext, answers: Readonly<Record<string, object | string | number>>) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-batch-command-'))
  const asked: { readonly what: string; readonly body: string; readonly authorization: string | undefined }[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const what = `${request.method} ${request.url?.replace('/api/v1', '')}`
      asked.push({ what, body, authorization: request.headers.authorization })
      const answer = answers[what] ?? 404
      if (typeof answer === 'number') response.writeHead(answer).end('no JSON')
      else if (typeof answer === 'string') response.writeHead(409).end(JSON.stringify({ error: { message: answer } }))
      else response.end('lines' in answer ? answer.lines : JSON.stringify(answer))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
    rmSync(folder, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const run = (...args: readonly string[]) => printed(batch, ...args, '--url', url, '--key', 'secret')
  return { asked, folder, run, url }
}

describe('weir batch', () => {
  it('submits a file for an endpoint, and prints the id of the batch and its state', async (t) => {
    const answers = { 'POST /files': { id: 'file-in' }, 'POST /batches': ended }
    const { asked, folder, run } = await stage(t, answers)
    const file = join(folder, 'in.jsonl')
    writeFileSync(file, '{"custom_id":"a"}\n')
    for (const [options, endpoint] of [
      [[], '/v1/chat/completions'],
      [['--endpoint', '/v1/embeddings'], '/v1/embeddings'],
    ] as const) {
      const { stdout, stderr, failure } = await run('submit', file, '--wait', ...options)
      assert.deepEqual(
        [stdout, stderr, failure],
        ['batch_1\ncompleted: 2 of 3 lines completed, 1 failed\n', '', undefined],
      )
      const [upload, created] = asked.splice(0)
      assert.deepEqual([upload?.what, upload?.authorization], ['POST /files', 'Bearer secret'])
      for (const part of ['name="purpose"\r\n\r\nbatch\r\n', 'name="file"; filename="in.jsonl"', '{"custom_id":"a"}\n'])
        assert.ok(upload?.body.includes(part), part)
      assert.equal(created?.what, 'POST /batches')
      const request = { input_file_id: 'file-in', endpoint, completion_window: '24h' }
      assert.deepEqual(JSON.parse(created.body), request)
    }
    assert.match((await run('submit', folder)).failure?.message ?? '', /is not a file$/)
  })

  it('leaves no file behind that the service makes no batch of', async (t) => {
    const answers = { 'POST /files': { id: 'file-in' }, 'POST /batches': 'too many lines' }
    const { asked, folder, run } = await stage(t, answers)
    writeFileSync(join(folder, 'in.jsonl'), '')
    assert.equal((await run('submit', join(folder, 'in.jsonl'))).failure?.message, 'too many lines')
    assert.deepEqual(
      asked.map(({ what }) => what),
      ['POST /files', 'POST /batches', 'DELETE /files/file-in'],
    )
  })

  it('shows why a batch waits and what is wrong with its file, and fails if it waited for one that did not complete', async (t) => {
    const data = [
      { line: 3, param: 'body.model', message: 'is missing' },
      { line: null, param: null, message: 'too long' },
    ]
    const failed = { ...ended, status: 'failed', errors: { count: 5, data } }
    const paused = { ...ended, status: 'in_progress', paused: { message: 'spent' } }
    const { run } = await stage(t, { 'GET /batches/a%2Fb': failed, 'GET /batches/p': paused })
    const shown = await run('status', 'a/b')
    assert.deepEqual(shown.stdout.trimEnd().split('\n').slice(1), [
      'failed: 2 of 3 lines completed, 1 failed',
      'line 3: body.model: is missing',
      'too long',
      'and 3 more',
    ])
    assert.equal(shown.failure, undefined)
    assert.equal((await run('status', 'a/b', '--wait')).failure?.message, 'the batch is failed')
    assert.match((await run('status', 'p')).stdout, /^in_progress: .* failed; paused: spent$/m)
    assert.deepEqual(JSON.parse((await run('status', 'a/b', '--json')).stdout), failed)
  })

  it('waits no longer once a batch has ended, however it ended', async (t) => {
    for (const status of ['failed', 'expired', 'cancelled']) {
      const { run } = await stage(t, { 'GET /batches/b': { ...ended, status } })
      assert.equal((await run('status', 'b', '--wait')).failure?.message, `the batch is ${status}`)
    }
  })

  it('prints the answers, or the lines that failed, or writes them to a file', async (t) => {
    const { run, folder } = await stage(t, {
      'GET /batches/b': ended,
      'GET /batches/none': { ...ended, output_file_id: null },
      'GET /batches/early': { ...ended, status: 'in_progress', output_file_id: null },
      'GET /files/file-out/content': { lines: '{"a":1}\n' },
      'GET /files/file-err/content': { lines: '{"b":2}\n' },
    })
    const output = join(folder, 'out.jsonl')
    assert.equal((await run('results', 'b', '--output', output)).stdout, '')
    assert.equal(readFileSync(output, 'utf8'), '{"a":1}\n')
    await run('results', 'b', '--errors', '--output', output)
    assert.equal(readFileSync(output, 'utf8'), '{"b":2}\n')
    assert.match((await run('results', 'none')).failure?.message ?? '', /^the batch has no such lines: completed/)
    assert.match((await run('results', 'early')).failure?.message ?? '', /^the batch has not ended: in_progress/)
  })

  it('cancels a batch, and reports what the service refuses, or that it does not answer', async (t) => {
    const { run, asked } = await stage(t, {
      'POST /batches/b/cancel': { ...ended, status: 'cancelling' },
      'POST /batches/over/cancel': 'it is completed',
      'POST /batches/odd/cancel': 502,
    })
    assert.match((await run('cancel', 'b')).stdout, /^batch_1\ncancelling/)
    assert.equal((await run('cancel', 'over')).failure?.message, 'it is completed')
    assert.equal((await run('cancel', 'odd')).failure?.message, 'the service answered with status 502')
    assert.equal(asked.length, 3)
    const away = ['status', 'b', '--url', 'http://127.0.0.1:1', '--key', 'x']
    assert.match((await printed(batch, ...away)).failure?.message ?? '', /^http:\/\/127\.0\.0\.1:1 does not answer: /)
  })

  it('borrows an API key from the service, and returns it whether it succeeds or fails', async (t) => {
    const { url, folder, asked } = await stage(t, { 'GET /batches/b': ended, 'GET /batches/late': 'it is gone' })
    const lent: string[] = []
    const lendKey = (workspace: string) => {
      if (workspace === 'missing') throw new Error('There is no workspace "missing".')
      lent.push(workspace)
      return { key: 'weir_lent', end: () => void lent.push('end') }
    }
    await scriptedService(t, folder, { lendKey }, url)
    const run = (...args: readonly string[]) => printed(batch, ...args, '--data', folder)
    assert.equal((await run('status', 'b')).failure, undefined)
    await eventually('the key is returned', () => lent.length === 2)
    assert.equal((await run('status', 'late', '--workspace', 'acme')).failure?.message, 'it is gone')
    await eventually('the key is returned', () => lent.length === 4)
    assert.deepEqual(lent, ['default', 'end', 'acme', 'end'])
    assert.ok(asked.every(({ authorization }) => authorization === 'Bearer weir_lent'))
    const refusal = 'There is no workspace "missing". Choose another one with --workspace.'
    assert.equal((await run('status', 'b', '--workspace', 'missing')).failure?.message, refusal)
    assert.equal(asked.length, 2)
  })

  it('says what is missing', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-batch-command-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    for (const [line, message] of [
      ['', /no action ""/],
      ['toString x', /no action "toString"/],
      ['submit', /weir batch submit FILE/],
      ['cancel', /weir batch cancel ID/],
      ['status b --url http://a', /--url and --key together/],
      ['status b --key k', /--url and --key together/],
      [`status b --data ${folder}`, /no service is running/],
    ] as const) {
      const { failure } = await printed(batch, ...line.split(' ').filter(Boolean))
      assert.ok(failure instanceof UsageError, line)
      assert.match(failure.message, message)
    }
  })
})
