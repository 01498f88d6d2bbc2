import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { CommandFailed, UsageError } from '../../src/cli/command.ts'
import { booksStage, SLUG, stageWithRows, MARCH } from '../support/books-stage.ts'
import { scriptedService } from '../support/scripted-service.ts'

describe('weir usage', () => {
  it('lists rows with their cost, of a period, as a table, as JSON or in a file', async (t) => {
    const { shown, failed } = await stageWithRows(t)
    assert.equal(
      await shown('usage --workspace acme'),
      `TIME (SYDNEY)        MODEL         USAGE                         COST
2025-03-15 12:30:00  meta/test-8b  1,000,000 in, 500,000 out  A$0.500
  request-000000001
2025-03-15 12:30:01  meta/test-8b  70,000 in                  A$0.014
  request-000000002  engine_failed (502 upstream_error), estimated
2025-03-16 12:30:00  meta/test-8b  2,000,000 out              A$1.200
  request-000000003

3 rows, A$1.714 excluding GST`,
    )
    assert.match(await shown('usage --workspace acme --to 2025-03-15'), /\n\n2 rows, A\$0\.514 excluding GST$/)
    assert.match(await shown('usage --workspace acme --from 2025-03-16'), /\n\n1 row, A\$1\.20 excluding GST$/)
    const json = JSON.parse(await shown('usage --workspace acme --json')) as {
      readonly object: string
      readonly data: readonly { readonly request_id: string }[]
      readonly total_pico_aud: string
    }
    assert.deepEqual([json.object, json.total_pico_aud, json.data.length], ['list', '1714000000000', 3])
    assert.equal(json.data[2]?.request_id, 'request-000000003')
    const folder = mkdtempSync(join(tmpdir(), 'weir-usage-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'rows')
    for (const format of ['csv', 'jsonl', 'parquet']) {
      const line = `usage --workspace acme --export ${format} ${file}.${format}`
      assert.equal(await shown(line), `Wrote ${file}.${format}.`)
      assert.deepEqual(JSON.parse(await shown(`${line} --json`)), { file: `${file}.${format}`, format })
    }
    assert.match(readFileSync(`${file}.csv`, 'utf8'), /^request_id,[^]*request-000000003,/)
    assert.equal(readFileSync(`${file}.jsonl`, 'utf8').trim().split('\n').length, 3)
    assert.equal(readFileSync(`${file}.parquet`).subarray(0, 4).toString(), 'PAR1')
    const cases = {
      usage: '--workspace is required',
      'usage --workspace acme more': 'unexpected argument "more"',
      'usage --workspace acme --export csv': 'give the file name: --export csv FILE',
      'usage --workspace acme --export xml file': '--export must be one of csv, jsonl, parquet',
      'usage --workspace acme --export csv one two': 'unexpected argument "two"; put names with spaces in quotes',
      'usage --export csv file': '--workspace is required',
      'usage refused more': 'unexpected argument "more"; put names with spaces in quotes',
      'usage cache more': 'unexpected argument "more"; put names with spaces in quotes',
      'usage request more': 'unexpected argument "more"; put names with spaces in quotes',
      'usage correct': 'give the id of the request: weir usage correct REQUEST_ID --reason TEXT',
      'usage correct request-000000001': '--reason is required',
    }
    for (const [line, message] of Object.entries(cases)) assert.deepEqual(await failed(line), [UsageError, message])
  })

  it('shows one request, settled, corrected or refused', async (t) => {
    const { shown, failed, audit, books } = await stageWithRows(t)
    assert.equal(
      await shown('usage request-000000002'),
      `request    request-000000002
workspace  acme
key        key_1
model      meta/test-8b
endpoint   /chat/completions
tier       default
settled    2025-03-15 12:30:01 (Sydney)
outcome    engine_failed
status     502
error      upstream_error
usage      70,000 in
cost       A$0.014 excluding GST
waited     0 ms
took       1 ms`,
    )
    assert.match(await shown('usage request-000000003'), /^waited {5}5 ms$/m)
    const json = JSON.parse(await shown('usage request-000000002 --json')) as Readonly<Record<string, unknown>>
    assert.deepEqual([json['object'], json['workspace'], json['request_id']], ['request', 'acme', 'request-000000002'])
    assert.equal(await shown('usage correct request-000000002 --reason "a mistake"'), 'Reversed request-000000002.')
    assert.equal(
      await shown('usage correct request-000000003 --reason again --json'),
      '{"corrects":"request-000000003"}',
    )
    assert.match(await shown('usage correction:request-000000002'), /^reason +a mistake$/m)
    assert.match(
      await shown('usage --workspace acme'),
      /\n {2}correction:request-000000002 {2}reverses request-000000002: a mistake\n/,
    )
    assert.deepEqual(await audit(2), [
      ['correctUsage', 'request-000000002', { reason: 'a mistake' }, 'done'],
      ['correctUsage', 'request-000000003', { reason: 'again' }, 'done'],
    ])
    const [acme] = await books.store.workspaces()
    const at = MARCH + 1_800_000
    const refusal = {
      requestId: 'r1',
      at,
      workspaceId: acme!.id,
      keyId: 'key_1',
      endpoint: '/chat/completions',
      model: SLUG,
      code: 'rate_limit_exceeded',
      httpStatus: 429,
      param: 'n',
      reason: 'too many',
    } as const
    const elsewhere = {
      ...refusal,
      requestId: 'r2',
      workspaceId: '',
      keyId: '',
      model: '',
      code: 'invalid_api_key',
    } as const
    const hour = at - (at % 3_600_000)
    const group = { hour, workspaceId: acme!.id, keyId: 'key_1', code: 'rate_limit_exceeded', requests: 1200 } as const
    const other = { ...group, workspaceId: '', keyId: '', code: 'invalid_api_key', requests: 1 } as const
    await books.store.addRefusals({ hours: [group, other], newest: [refusal, elsewhere] }, 0)
    assert.equal(
      await shown('usage r1'),
      `request    r1
workspace  acme
key        key_1
model      meta/test-8b
endpoint   /chat/completions
refused    2025-03-15 13:00:00 (Sydney)
status     429
error      rate_limit_exceeded
parameter  n
reason     too many`,
    )
    assert.match(await shown('usage r1 --json'), /^\{"object":"refused_request",.*"workspace":"acme"/)
    assert.equal(
      await shown('usage refused'),
      `WORKSPACE  KEY    STATUS  CODE                 REQUESTS
acme       key_1  429     rate_limit_exceeded     1,200
-          -      401     invalid_api_key             1

1,201 refused requests. The newest:

TIME (SYDNEY)        CODE                 ENDPOINT           MODEL
2025-03-15 13:00:00  invalid_api_key      /chat/completions  -
  r2
2025-03-15 13:00:00  rate_limit_exceeded  /chat/completions  meta/test-8b
  r1

weir usage REQUEST_ID says why one was refused.`,
    )
    const own = JSON.parse(await shown('usage refused --workspace acme --json')) as {
      readonly object: string
      readonly groups: readonly { readonly workspace: string; readonly requests: number }[]
      readonly newest: readonly { readonly request_id: string; readonly workspace: string }[]
    }
    assert.equal(own.object, 'refused')
    assert.deepEqual([own.groups[0]?.workspace, own.groups[0]?.requests, own.groups.length], ['acme', 1200, 1])
    assert.deepEqual(
      own.newest.map((it) => [it.request_id, it.workspace]),
      [['r1', 'acme']],
    )
    // The hour in which the period begins is in it as a whole.
    const late = 'usage refused --from 2025-03-15T02:30:00Z'
    assert.match(await shown(late), /1,201 refused requests\. The newest:\n\n\(none\)/)
    assert.equal(await shown('usage refused --to 2025-03-14'), 'No requests were refused.')
    assert.deepEqual(await failed('usage nothing'), [
      CommandFailed,
      'there is no request nothing; of refused requests, only the newest of each workspace and error code are kept',
    ])
  })

  it('shows what was cached by key, and why not more, while a service runs', async (t) => {
    const { shown, failed, books, dataDir } = await booksStage(t)
    const [acme, other] = [await books.workspace('acme'), await books.workspace('other')]
    assert.deepEqual(await failed('usage cache'), [
      CommandFailed,
      `no service is running on ${dataDir}; what was cached is known only while one runs`,
    ])
    const none = { first_use: 0, prefix_changed: 0, evicted: 0, moved: 0 }
    const entry = { keyId: 'key_1', model: SLUG, requests: 2000, inputTokens: 1000, cachedInputTokens: 555 }
    const latestChange = { message: 2, afterCharacter: 1234, at: MARCH }
    const entries = [
      {
        ...entry,
        workspaceId: acme.id,
        misses: { first_use: 4, prefix_changed: 1, evicted: 2, moved: 3 },
        latestChange,
      },
      { ...entry, workspaceId: other.id, keyId: 'key_2', misses: none, latestChange: undefined },
      {
        ...entry,
        workspaceId: other.id,
        keyId: 'key_3',
        misses: { ...none, prefix_changed: 2 },
        latestChange: { ...latestChange, message: -1 },
      },
      {
        ...entry,
        workspaceId: other.id,
        keyId: 'key_4',
        misses: { ...none, prefix_changed: 1 },
        latestChange: undefined,
      },
    ] as never
    await scriptedService(t, dataDir, { cacheUse: () => entries })
    assert.equal(
      await shown('usage cache'),
      `WORKSPACE  KEY    MODEL         REQUESTS  CACHED
acme       key_1  meta/test-8b     2,000    56 %
  not cached: 4 new; 3 cached at another address, which was down or far busier; 2 no longer in the cache; 1 prompt changed near the beginning, last in message 2 after character 1,234
other      key_2  meta/test-8b     2,000    56 %
other      key_3  meta/test-8b     2,000    56 %
  not cached: 2 prompts changed near the beginning, last in the tools after character 1,234
other      key_4  meta/test-8b     2,000    56 %
  not cached: 1 prompt changed near the beginning`,
    )
    const json = JSON.parse(await shown('usage cache --workspace acme --json')) as {
      readonly object: string
      readonly data: readonly { readonly workspace: string; readonly key_id: string }[]
    }
    assert.deepEqual([json.object, json.data.length, json.data[0]?.workspace], ['list', 1, 'acme'])
  })
})
