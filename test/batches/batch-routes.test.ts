import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import type { Batch } from '../../src/batches/batch-store.ts'
import type { Batches } from '../../src/batches/batches.ts'
import type { StoredFile } from '../../src/batches/file-store.ts'
import type { BatchFiles } from '../../src/batches/files.ts'
import { batchRoutes } from '../../src/batches/routes/batches.ts'
import { consoleBatchRoutes } from '../../src/batches/routes/console-batches.ts'
import { batchFileRoutes } from '../../src/batches/routes/files.ts'
import { operatorBatchRoutes } from '../../src/batches/routes/operator-batches.ts'
import type { Accounts } from '../../src/workspaces/accounts.ts'
import type { SignedIn } from '../../src/workspaces/sessions/workspace-sessions.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'
import { ask, askDocumented } from '../support/route-answer.ts'

/** What the routes of batches and their files answer. */

const caller = { workspace: { id: 'ws_1', name: 'acme' }, keyId: 'key_1' } as Caller
const session = { caller } as SignedIn
const SECOND = 1_700_000_000
const at = (seconds: number): number => (SECOND + seconds) * 1000 + 999
const batchOf = (id: string, changes: Partial<Batch> = {}): Batch => ({
  id,
  workspaceId: 'ws_1',
  keyId: 'key_1',
  endpoint: '/v1/embeddings',
  inputFileId: 'file-in',
  filename: 'in.jsonl',
  inputBytes: 5,
  place: 'here',
  completionWindow: '24h',
  metadata: { a: 'b' },
  state: 'in_progress',
  ending: null,
  counts: { total: 3, completed: 1, failed: 1 },
  errors: { count: 7, data: [{ code: 'x', message: 'y', param: 'z' }] },
  failures: null,
  pause: { code: 'p', message: 'q', since: at(3) },
  outputFileId: 'file-out',
  errorFileId: 'file-err',
  createdAt: at(1),
  expiresAt: at(9),
  inProgressAt: at(2),
  finalizingAt: null,
  cancellingAt: null,
  endedAt: null,
  ...changes,
})

/** Batches that record how they are asked. Each page has two, and another one follows. */
function stage(batch: Batch = batchOf('batch_1')) {
  const asked: unknown[] = []
  const note = <Result>(result: Result, ...what: readonly unknown[]): Result => (asked.push(what), result)
  const batches: Partial<Batches> = {
    create: async (...given) => note(batch, 'create', ...given),
    batch: async (...given) => note(batch, 'batch', ...given),
    list: async (query) => note({ batches: [batch, batchOf('batch_0')], hasMore: query.limit < 50 }, 'list', query),
    cancel: async (...given) => note({ ...batch, state: 'cancelling', cancellingAt: at(5) }, 'cancel', ...given),
    progress: async () => ({
      amount: 12_300_000_000n,
      linesPerMinute: 84.46,
      expectedEnd: at(8),
      failures: [{ code: 'c', count: 2, line: 17, customId: 'q-17', message: 'm' }],
    }),
  }
  const workspaces = { workspaceById: (id: string) => (id === 'ws_1' ? caller.workspace : undefined) }
  const accounts = { ...workspaces, workspace: (name: string) => ({ id: `id of ${name}` }) } as unknown as Accounts
  const parts = { batches: batches as Batches, accounts }
  return { asked, routes: batchRoutes(parts), own: consoleBatchRoutes(parts), all: operatorBatchRoutes(parts) }
}

const seen = {
  id: 'batch_1',
  object: 'batch',
  endpoint: '/v1/embeddings',
  errors: { object: 'list', count: 7, data: [{ code: 'x', message: 'y', param: 'z', line: null }] },
  input_file_id: 'file-in',
  completion_window: '24h',
  status: 'in_progress',
  paused: { code: 'p', message: 'q', since: SECOND + 3 },
  output_file_id: 'file-out',
  error_file_id: 'file-err',
  created_at: SECOND + 1,
  in_progress_at: SECOND + 2,
  expires_at: SECOND + 9,
  finalizing_at: null,
  completed_at: null,
  failed_at: null,
  expired_at: null,
  cancelling_at: null,
  cancelled_at: null,
  request_counts: { total: 3, completed: 1, failed: 1 },
  metadata: { a: 'b' },
}

describe('a batch for its caller', () => {
  it('is created, shown and cancelled for the workspace, with times in seconds', async () => {
    const { routes, asked } = stage()
    const body = { input_file_id: 'file-in', endpoint: '/v1/embeddings', completion_window: '24h' }
    for (const metadata of [undefined, { a: 'b' }]) {
      const given = { caller, body: { ...body, metadata } }
      assert.deepEqual((await askDocumented(routes, 'POST /api/v1/batches', given)).body, seen)
      const request = { inputFileId: 'file-in', endpoint: '/v1/embeddings', metadata: metadata ?? null }
      assert.deepEqual(asked.pop(), ['create', caller, request])
    }
    assert.deepEqual((await askDocumented(routes, 'GET /api/v1/batches/batch_1', { caller })).body, seen)
    const cancelled = { ...seen, status: 'cancelling', cancelling_at: SECOND + 5 }
    assert.deepEqual((await askDocumented(routes, 'POST /api/v1/batches/batch_1/cancel', { caller })).body, cancelled)
    assert.deepEqual(asked, [
      ['batch', 'ws_1', 'batch_1'],
      ['cancel', 'ws_1', 'batch_1'],
    ])
  })

  for (const state of ['completed', 'failed', 'expired', 'cancelled'] as const) {
    it(`that is ${state} says when under that name alone`, async () => {
      const { routes } = stage(
        batchOf('batch_1', { state, finalizingAt: at(6), endedAt: at(7), pause: null, errors: null }),
      )
      assert.deepEqual((await askDocumented(routes, 'GET /api/v1/batches/batch_1', { caller })).body, {
        ...seen,
        status: state,
        paused: null,
        errors: null,
        finalizing_at: SECOND + 6,
        [`${state}_at`]: SECOND + 7,
      })
    })
  }

  it('is listed with others in pages of twenty, or as many as are asked for', async () => {
    const { routes, asked } = stage()
    const page = await askDocumented(routes, 'GET /api/v1/batches', { caller })
    assert.partialDeepStrictEqual(page.body, { first_id: 'batch_1', last_id: 'batch_0', has_more: true })
    assert.deepEqual(page.body.data[0], seen)
    const more = await askDocumented(routes, 'GET /api/v1/batches?after=batch_9&limit=50', { caller })
    assert.equal(more.body.has_more, false)
    assert.deepEqual(asked, [
      ['list', { workspaceId: 'ws_1', after: undefined, limit: 20 }],
      ['list', { workspaceId: 'ws_1', after: 'batch_9', limit: 50 }],
    ])
  })

  for (const wrong of ['limit=0', 'limit=101', `after=${'x'.repeat(101)}`]) {
    it(`is not listed with ${wrong.slice(0, 12)}`, async () => {
      await assert.rejects(ask(stage().routes, `GET /api/v1/batches?${wrong}`, { caller }), { code: 'invalid_value' })
    })
  }
})

describe('a batch in a console', () => {
  const iso = (seconds: number): string => new Date(at(seconds)).toISOString()
  const inList = {
    id: 'batch_1',
    filename: 'in.jsonl',
    endpoint: '/v1/embeddings',
    status: 'in_progress',
    paused: { code: 'p', message: 'q', since: iso(3) },
    request_counts: seen.request_counts,
    created_at: iso(1),
  }
  const detail = {
    ...inList,
    expires_at: iso(9),
    ended_at: null,
    output_file_id: 'file-out',
    error_file_id: 'file-err',
    errors: seen.errors,
    amount: '0.0123',
    lines_per_minute: 84.5,
    expected_end: iso(8),
    failures: [{ code: 'c', count: 2, line: 17, custom_id: 'q-17', message: 'm' }],
  }

  it('is shown to its workspace with its cost, its pace and its failures', async () => {
    const { own, asked } = stage()
    const { body } = await askDocumented(own, 'GET /console/api/batches/batch_1', { session })
    assert.deepEqual([body, asked], [detail, [['batch', 'ws_1', 'batch_1']]])
    const ended = stage(batchOf('batch_1', { endedAt: at(7) }))
    assert.equal((await ask(ended.own, 'GET /console/api/batches/batch_1', { session })).text.includes(iso(7)), true)
  })

  it('is listed to its workspace in pages', async () => {
    const { own, asked } = stage()
    const page = await askDocumented(own, 'GET /console/api/batches', { session })
    assert.deepEqual([page.body.data[0], page.body.next], [inList, 'batch_0'])
    const last = await askDocumented(own, 'GET /console/api/batches?before=batch_9&limit=50', { session })
    assert.equal(last.body.next, null)
    assert.deepEqual(asked, [
      ['list', { workspaceId: 'ws_1', after: undefined, limit: 20 }],
      ['list', { workspaceId: 'ws_1', after: 'batch_9', limit: 50 }],
    ])
  })

  it('is shown to the operator with the name of its workspace, or its id if that is gone', async () => {
    const { all, asked } = stage()
    const { body } = await askDocumented(all, 'GET /admin/v1/batches/batch_1')
    assert.deepEqual([body, asked], [{ workspace: 'acme', ...detail }, [['batch', undefined, 'batch_1']]])
    const orphan = stage(batchOf('batch_1', { workspaceId: 'ws_gone' }))
    assert.equal((await askDocumented(orphan.all, 'GET /admin/v1/batches/batch_1')).body.workspace, 'ws_gone')
  })

  it('is listed to the operator in pages, of all workspaces or of one', async () => {
    const { all, asked } = stage()
    const page = await askDocumented(all, 'GET /admin/v1/batches')
    assert.deepEqual([page.body.data[0], page.body.next], [{ workspace: 'acme', ...inList }, 'batch_0'])
    const last = await askDocumented(all, 'GET /admin/v1/batches?workspace=acme&before=batch_9&limit=50')
    assert.equal(last.body.next, null)
    assert.deepEqual(asked, [
      ['list', { workspaceId: undefined, after: undefined, limit: 20 }],
      ['list', { workspaceId: 'id of acme', after: 'batch_9', limit: 50 }],
    ])
  })

  it('is cancelled by the operator, which is recorded with its state before', async () => {
    const { all, asked } = stage()
    const { body, recorded } = await askDocumented(all, 'POST /admin/v1/batches/batch_1/cancel')
    assert.equal(body.status, 'cancelling')
    assert.partialDeepStrictEqual(recorded, [{ state: { workspace: 'acme', ...inList } }])
    assert.deepEqual(asked.at(-1), ['cancel', undefined, 'batch_1'])
  })
})

describe('a file of batches', () => {
  const stored: StoredFile = {
    id: 'file-1',
    workspaceId: 'ws_1',
    purpose: 'batch',
    filename: 'in.jsonl',
    bytes: 3,
    place: 'here',
    createdAt: at(1),
    expiresAt: at(9),
  }
  const view = {
    id: 'file-1',
    object: 'file',
    bytes: 3,
    created_at: SECOND + 1,
    expires_at: SECOND + 9,
    filename: 'in.jsonl',
    purpose: 'batch',
    status: 'processed',
  }

  function files() {
    const asked: unknown[] = []
    const batchFiles: Partial<BatchFiles> = {
      async upload(workspaceId, filename, upload) {
        const bytes = Buffer.alloc(upload.length)
        await upload.read(bytes, 0)
        asked.push(['upload', workspaceId, filename, bytes.toString()])
        return { ...stored, filename }
      },
      list: async (query) => (
        asked.push(['list', query]),
        { files: [stored, { ...stored, id: 'file-0' }], hasMore: query.limit < 200 }
      ),
      file: async (...given) => (asked.push(['file', ...given]), stored),
      read: async (_file, ...part) => (asked.push(['read', ...part]), Readable.from([Buffer.from('abc')])),
      remove: async ({ id }) => void asked.push(['remove', id]),
    }
    const spool = {
      async open() {
        const pieces: Buffer[] = []
        return {
          get length() {
            return Buffer.concat(pieces).length
          },
          append: async (added: readonly Buffer[]) => void pieces.push(...added),
          read: async (into: Buffer, from: number) => Buffer.concat(pieces).copy(into, 0, from),
          close: async () => void asked.push(['close']),
        }
      },
    } as never
    const routes = batchFileRoutes({
      batchFiles: batchFiles as BatchFiles,
      spool,
      batchLimits: { maxFileBytes: 10 },
    })
    return { asked, routes }
  }

  async function upload(fields: Readonly<Record<string, string>>, name?: string, content = 'abc') {
    const form = new FormData()
    for (const [field, value] of Object.entries(fields)) form.append(field, value)
    if (name !== undefined) form.append('file', new Blob([content]), name)
    const response = new Response(form)
    const { asked, routes } = files()
    const asking = {
      caller,
      body: Buffer.from(await response.arrayBuffer()),
      headers: { 'content-type': response.headers.get('content-type') ?? '' },
    }
    const answered = await askDocumented(routes, 'POST /api/v1/files', asking)
    return { asked, body: answered.body }
  }

  it('is uploaded with its name, which has no control characters and at most 255 others', async () => {
    for (const [name, kept] of [
      ['in.jsonl', 'in.jsonl'],
      ['a\u0085b\u009f', 'ab'],
      ['\u0085', 'upload.jsonl'],
      ['x'.repeat(256), 'x'.repeat(255)],
    ] as const) {
      const { asked, body } = await upload({ purpose: 'batch' }, name)
      assert.deepEqual(asked, [['upload', 'ws_1', kept, 'abc'], ['close']])
      assert.deepEqual(body, { ...view, filename: kept })
    }
  })

  it('is refused without its purpose, with another one, without content, and if it is too long', async () => {
    await assert.rejects(upload({}, 'in.jsonl'), { code: 'missing_required_parameter', param: 'purpose' })
    await assert.rejects(upload({ purpose: 'x' }, 'in.jsonl'), { code: 'invalid_value', param: 'purpose' })
    await assert.rejects(upload({ purpose: 'batch' }), { code: 'missing_required_parameter', param: 'file' })
    await assert.rejects(upload({ purpose: 'batch' }, 'in.jsonl', 'x'.repeat(11)), { code: 'request_too_large' })
    await upload({ purpose: 'batch' }, 'in.jsonl', 'x'.repeat(10))
  })

  it('is listed with others in pages of a hundred, the newest first, or as is asked for', async () => {
    const { asked, routes } = files()
    const { body } = await askDocumented(routes, 'GET /api/v1/files', { caller })
    const data = [view, { ...view, id: 'file-0' }]
    assert.deepEqual(body, { object: 'list', data, first_id: 'file-1', last_id: 'file-0', has_more: true })
    const query = 'purpose=batch_output&order=asc&after=file-9&limit=200'
    assert.equal((await askDocumented(routes, `GET /api/v1/files?${query}`, { caller })).body.has_more, false)
    assert.deepEqual(asked, [
      ['list', { workspaceId: 'ws_1', order: 'desc', limit: 100 }],
      ['list', { workspaceId: 'ws_1', purpose: 'batch_output', order: 'asc', after: 'file-9', limit: 200 }],
    ])
    for (const wrong of ['limit=0', 'limit=10001', `after=${'x'.repeat(101)}`, 'order=up', 'purpose=x'])
      await assert.rejects(ask(routes, `GET /api/v1/files?${wrong}`, { caller }), { code: 'invalid_value' })
  })

  it('is shown, downloaded and deleted', async () => {
    const { asked, routes } = files()
    assert.deepEqual((await askDocumented(routes, 'GET /api/v1/files/file-1', { caller })).body, view)
    const { bytes, headers } = await ask(routes, 'GET /api/v1/files/file-1/content', { caller })
    assert.equal(bytes.toString(), 'abc')
    assert.partialDeepStrictEqual(headers, {
      'Content-Type': 'application/jsonl',
      'Content-Length': '3',
      'Content-Disposition': 'attachment',
      'X-Content-Type-Options': 'nosniff',
    })
    const { body } = await askDocumented(routes, 'DELETE /api/v1/files/file-1', { caller })
    assert.deepEqual(body, { id: 'file-1', object: 'file', deleted: true })
    const found = ['file', 'ws_1', 'file-1']
    assert.deepEqual(asked, [found, found, ['read', 0, 3], found, ['remove', 'file-1']])
  })
})
