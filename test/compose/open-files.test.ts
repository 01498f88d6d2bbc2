import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import type { StoredFileStore } from '../../src/batches/file-store.ts'
import { openFiles } from '../../src/compose/open-files.ts'
import type { Start } from '../../src/compose/start.ts'
import type { FilesConfig } from '../../src/config/config-storage.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { s3Secrets, s3Stub } from '../support/s3-stub.ts'

/** Where files are kept. The database is a list of calls, and a test fires the timers. */

const MINUTE_MS = 60_000
const local: FilesConfig = { kind: 'local', publicUrl: undefined, linkTtlSeconds: 60, maxBytes: 1e6 }

function stage(t: TestContext, links: FilesConfig | undefined, maxSpoolBytes = 10) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-open-files-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [dataDir, sharedDir] = [join(folder, 'worker-2'), join(folder, 'shared')]
  const opened = new AsyncDisposableStack()
  const sweeps = new Set<() => void>()
  const seen: unknown[] = []
  const start = {
    opened,
    clock: {
      ...systemClock,
      after(ms: number, ring: () => void) {
        assert.equal(ms, MINUTE_MS)
        sweeps.add(ring)
        return () => sweeps.delete(ring)
      },
    },
    config: {
      dataDir,
      sharedDir,
      processes: 2,
      files: () => links,
      audio: { maxSpoolBytes },
      batches: { maxFiles: 3, maxStoredBytes: 7, retentionDays: 2 },
    },
    telemetry: { log: { warn: ({ reason }: { reason: string }) => void seen.push(reason) } },
  } as unknown as Start
  const rooms: number[] = []
  const reserveFile: StoredFileStore['reserveFile'] = async ({ createdAt, expiresAt }, { room, ...quota }) => {
    seen.push(expiresAt - createdAt, quota)
    rooms.push(room)
    return true
  }
  const store = {
    reserveFile,
    finishFile: async () => {},
    filesToRemove: () => Promise.reject(new Error('the store is away')),
  }
  const files = openFiles(start, store as never, () => 'http://listener.example/')
  return { ...files, opened, sweeps, seen, rooms, dataDir, sharedDir }
}

const source = (content: string) => ({
  length: content.length,
  read: async (into: Buffer, from: number) => Buffer.from(content).copy(into, 0, from),
})

async function uploaded({ batchFiles }: Pick<ReturnType<typeof stage>, 'batchFiles'>): Promise<string> {
  const file = await batchFiles.upload('ws', 'in.jsonl', source('lines'))
  return text(await batchFiles.read(file, 0, file.bytes))
}

describe('files without links to images', () => {
  it('are those of batches, in the folder that workers share, and uploads in that of each worker', async (t) => {
    const it = stage(t, undefined)
    assert.equal(it.files, undefined)
    assert.equal(await uploaded(it), 'lines')
    assert.deepEqual(it.seen, [2 * 86_400_000, { maxFiles: 3, maxStoredBytes: 7 }])
    assert.equal(it.batchFiles.place, readFileSync(join(it.sharedDir, 'batches/place'), 'utf8'))
    assert.deepEqual([readdirSync(it.sharedDir), readdirSync(it.dataDir)], [['batches'], ['spool']])
    const upload = await it.spool.open('ws')
    await assert.rejects(upload.append([Buffer.alloc(6)]), { code: 'service_unavailable' })
    await upload.append([Buffer.alloc(5)])
    await upload.close()
    for (const ring of it.sweeps) ring()
    await it.opened.disposeAsync()
    assert.deepEqual([it.seen.at(-1), it.sweeps.size], ['the store is away', 0])
  })
})

it('two processes that share a disk give the uploads of a workspace less than half of it, and count all of it as room for files', async (t) => {
  t.mock.method(fsPromises, 'statfs', async () => ({ blocks: 4000, bavail: 2000, bsize: 1 }))
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  const { spool, opened, rooms, ...others } = stage(t, undefined, 10_000)
  const upload = await spool.open('ws')
  // A quarter of the disk stays free, and each process allows 29 % of the other 1000 bytes.
  await assert.rejects(upload.append([Buffer.alloc(293)]), /its share of the disk/)
  await upload.append([Buffer.alloc(292)])
  await upload.close()
  await uploaded(others)
  assert.deepEqual(rooms, [1000 + 'lines'.length])
  await opened.disposeAsync()
})

describe('images on disk', () => {
  it('are in the folder that workers share, with links to the public address or that of the listener', async (t) => {
    for (const publicUrl of [undefined, 'https://public.example']) {
      const { files, opened, sharedDir } = stage(t, { ...local, publicUrl })
      const link = (await files?.put(Buffer.from('picture'), 'image/png', 'acme')) ?? ''
      assert.ok(link.startsWith(`${publicUrl ?? 'http://listener.example'}/files/`), link)
      assert.deepEqual(readdirSync(sharedDir).toSorted(), ['batches', 'files', 'link-secret'])
      await opened.disposeAsync()
    }
  })
})

describe('images in S3', () => {
  it('are there with the files of batches, until the service stops', async (t) => {
    const bucket = await s3Stub()
    t.after(() => bucket.close())
    const it = stage(t, {
      kind: 's3',
      endpoint: bucket.url,
      bucket: 'b',
      region: s3Secrets.region,
      accessKey: s3Secrets.access,
      secretKey: s3Secrets.secret,
      prefix: 'p/',
      publicUrl: undefined,
      linkTtlSeconds: 60,
    })
    const put = () => it.files?.put(Buffer.from('picture'), 'image/png', 'acme')
    assert.ok((await put())?.startsWith(`${bucket.url}/b/p/`))
    assert.equal(await uploaded(it), 'lines')
    assert.equal(it.batchFiles.place, `s3 ${bucket.url}/b/p/`)
    await it.opened.disposeAsync()
    for (const late of [put(), uploaded(it)])
      await assert.rejects(Promise.resolve(late), { code: 'service_unavailable' })
    assert.equal(bucket.arrived, 2)
  })
})
