import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import OpenAI, { toFile } from 'openai'
import { storedOnDisk } from '../../src/server/files/stored-on-disk.ts'
import type { StoredFiles } from '../../src/server/files/stored-files.ts'
import { chatStage } from '../support/chat-stage.ts'
import { roomyDisk } from '../support/roomy-disk.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { storedInStub } from '../support/stored-in-s3.ts'

const LINES = '{"custom_id":"1"}\n{"custom_id":"2"}\n'

async function sdk(t: TestContext) {
  const { weir } = await sharedStage(t)
  return { weir, client: new OpenAI({ apiKey: weir.key, baseURL: weir.base, maxRetries: 0 }) }
}

const upload = (client: OpenAI, content: string | Buffer = LINES, name = 'lines.jsonl') =>
  toFile(Buffer.from(content), name).then((file) => client.files.create({ file, purpose: 'batch' }))

describe('files, with the SDK of OpenAI', () => {
  it('are uploaded, shown, downloaded and deleted', async (t) => {
    const { client, weir } = await sdk(t)
    const file = await upload(client)
    assert.deepEqual(
      { ...file, id: '', created_at: 0, expires_at: 0 },
      {
        id: '',
        object: 'file',
        bytes: LINES.length,
        created_at: 0,
        expires_at: 0,
        filename: 'lines.jsonl',
        purpose: 'batch',
        status: 'processed',
      },
    )
    assert.equal((file.expires_at ?? 0) - file.created_at, 30 * 86_400)
    assert.deepEqual({ ...(await client.files.retrieve(file.id)) }, { ...file })
    assert.equal(await (await client.files.content(file.id)).text(), LINES)
    assert.ok(readdirSync(join(weir.dataDir, 'batches')).includes(file.id))
    assert.deepEqual(await client.files.delete(file.id), { id: file.id, object: 'file', deleted: true })
    assert.ok(!readdirSync(join(weir.dataDir, 'batches')).includes(file.id))
    await assert.rejects(client.files.content(file.id), { status: 404, code: 'not_found' })
  })

  it('are listed in pages, the newest first, and only those of the workspace', async (t) => {
    const { client } = await sdk(t)
    const other = await sdk(t)
    const ids = []
    for (const name of ['a', 'b', 'c', 'd', 'e']) ids.push((await upload(client, LINES, name)).id)
    await upload(other.client)
    const listed = []
    for await (const file of client.files.list({ limit: 2 })) listed.push(file.id)
    assert.deepEqual(new Set(listed), new Set(ids))
    assert.equal(listed.length, 5)
    const times = (await client.files.list()).data.map((it) => it.created_at)
    assert.deepEqual(
      times,
      times.toSorted((one, two) => two - one),
    )
    const ascending = (await client.files.list({ order: 'asc' })).data.map((it) => it.id)
    assert.deepEqual(ascending, listed.toReversed())
    assert.deepEqual((await client.files.list({ purpose: 'batch_output' })).data, [])
    await assert.rejects(other.client.files.retrieve(ids[0] ?? ''), { status: 404 })
    await assert.rejects(other.client.files.delete(ids[0] ?? ''), { status: 404 })
    await assert.rejects(other.client.files.list({ after: ids[0] ?? '' }), { status: 404 })
  })

  it('need a purpose and a file', async (t) => {
    const { client, weir } = await sdk(t)
    const file = await toFile(Buffer.from(LINES), 'a')
    await assert.rejects(client.files.create({ file, purpose: 'vision' }), { status: 400, param: 'purpose' })
    const form = new FormData()
    form.set('purpose', 'batch')
    const response = await weir.call('/files', { method: 'POST', body: form })
    assert.equal(response.status, 400)
    assert.match(await response.text(), /Missing required parameter: 'file'/)
  })

  it('expire at the time that the upload names, or after the retention if that is earlier', async (t) => {
    const { weir } = await chatStage(t, { config: { batches: { retention_days: 2 } } })
    const client = new OpenAI({ apiKey: weir.key, baseURL: weir.base, maxRetries: 0 })
    const file = await toFile(Buffer.from(LINES), 'a')
    const kept = async (seconds: number): Promise<number> => {
      const expires_after = { anchor: 'created_at', seconds } as const
      const { created_at, expires_at } = await client.files.create({ file, purpose: 'batch', expires_after })
      return expires_at! - created_at
    }
    assert.equal(await kept(3600), 3600)
    assert.equal(await kept(2_592_000), 2 * 86_400)
    for (const seconds of [3599, 2_592_001, 3600.5, Number.NaN]) {
      await assert.rejects(kept(seconds), { status: 400, param: 'expires_after.seconds' }, String(seconds))
    }
    const expires_after = { anchor: 'last_used_at', seconds: 3600 } as never
    const wrong = client.files.create({ file, purpose: 'batch', expires_after })
    await assert.rejects(wrong, { status: 400, param: 'expires_after.anchor' })
  })

  it('are limited in size, number and bytes', async (t) => {
    const { weir } = await chatStage(t, {
      config: { batches: { max_file_bytes: 2000, max_files: 3, max_stored_bytes: 5000 } },
    })
    const client = new OpenAI({ apiKey: weir.key, baseURL: weir.base, maxRetries: 0 })
    await assert.rejects(upload(client, 'x'.repeat(2001)), { status: 413, param: 'file' })
    await upload(client, 'x'.repeat(2000))
    const second = await upload(client, 'x'.repeat(2000))
    // Only one of them fits, however many arrive together.
    const several = await Promise.allSettled([1, 2, 3].map(() => upload(client, 'x'.repeat(1000))))
    assert.equal(several.filter((it) => it.status === 'fulfilled').length, 1)
    await assert.rejects(upload(client, 'x'), { status: 403, code: 'quota_exceeded' })
    await client.files.delete(second.id)
    await upload(client, 'x')
    await assert.rejects(upload(client, 'x'), { status: 403, code: 'quota_exceeded' })
    assert.equal(readdirSync(join(weir.dataDir, 'batches')).filter((it) => it.startsWith('file-')).length, 3)
  })
})

const source = (bytes: Buffer) => ({
  length: bytes.length,
  read: async (into: Buffer, position: number) => bytes.copy(into, 0, position),
})

for (const [where, open] of [
  ['on disk', onDisk],
  ['in S3', inS3],
] as const) {
  describe(`files ${where}`, () => {
    it('are written and read in pieces, replaced and removed', async (t) => {
      const stored = await open(t)
      const bytes = Buffer.from('0123456789'.repeat(30_000))
      await stored.write('file-a', source(Buffer.from('before')))
      await stored.write('file-a', source(bytes))
      assert.deepEqual(await buffer(await stored.read('file-a', 0, bytes.length)), bytes)
      assert.equal(await text(await stored.read('file-a', 199_995, 200_002)), '5678901')
      assert.equal(await text(await stored.read('file-a', 5, 5)), '')
      await stored.remove('file-a')
      await stored.remove('file-a')
      await assert.rejects(stored.read('file-a', 0, 1), { code: 'not_found' })
    })
  })
}

it('files on disk have one place for all processes that share the folder', (t) => {
  const folder = folderFor(t)
  const places = [1, 2].map(() => storedOnDisk(folder, roomyDisk()).place)
  assert.equal(places[0], places[1])
  assert.notEqual(storedOnDisk(folderFor(t), roomyDisk()).place, places[0])
})

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-stored-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

async function onDisk(t: TestContext): Promise<StoredFiles> {
  return storedOnDisk(join(folderFor(t), 'batches'), roomyDisk())
}

async function inS3(t: TestContext): Promise<StoredFiles> {
  const { stored } = await storedInStub(t)
  t.after(() => stored.close())
  return stored
}

it('a file in S3 is missing only if the bucket answers NoSuchKey; any other error is an outage', async (t) => {
  const { stored, bucket } = await storedInStub(t)
  t.after(() => stored.close())
  bucket.failures.push(404, 403)
  for (const status of [404, 403]) {
    await assert.rejects(stored.read('file-a', 0, 1), { message: `the file storage answered with status ${status}` })
  }
  await assert.rejects(stored.read('file-a', 0, 1), { code: 'not_found' })
  bucket.failures.push(404)
  await assert.rejects(stored.remove('file-a'))
})
