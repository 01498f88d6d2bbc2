import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { diskRoom, type DiskRoom } from '../../src/shared/disk-room.ts'
import { localFiles } from '../../src/server/files/local.ts'
import type { FileStore } from '../../src/server/files/files.ts'
import { diskSteps } from '../support/disk-steps.ts'
import { openFiles } from '../support/open-files.ts'
import { roomyDisk } from '../support/roomy-disk.ts'
import { eventually, gate } from '../support/waiting.ts'

const MIB = 1_048_576

/** A store with a settable clock. Calling `start` again is a restart on the same directory. */
function stage(
  t: TestContext,
  {
    disk = roomyDisk(),
    share = MIB,
    linkTtlSeconds = 60,
  }: { linkTtlSeconds?: number; share?: number; disk?: DiskRoom } = {},
) {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-files-'))
  t.after(() => rmSync(dataDir, { recursive: true }))
  // Files expire at whole seconds.
  const time = { ms: Math.floor(Date.now() / 1000) * 1000 }
  const clock = { now: () => time.ms, monotonic: () => time.ms }
  const options = { dataDir, publicUrl: () => 'http://weir.test/', linkTtlSeconds, maxBytes: 2 * share }
  /** Its files belong to one owner, whose share is half of all, unless the test names others. */
  const start = () => {
    const store = localFiles(options, clock, disk)
    t.after(() => store.close())
    return {
      ...store,
      put: (bytes: Buffer, contentType: string, owner = 'acme') => store.put(bytes, contentType, owner),
    }
  }
  return { dataDir, time, start, names: () => readdirSync(join(dataDir, 'files')) }
}

async function read(store: FileStore, link: string): Promise<string> {
  const { pathname, search } = new URL(link)
  const file = (await store.open?.(pathname.split('/').at(-1) ?? '', search.slice(1))) ?? assert.fail()
  return text(file.stream)
}

describe('files in the data directory', () => {
  it('survive a restart together with their links', async (t) => {
    const { start } = stage(t)
    const link = await start().put(Buffer.from('one'), 'image/png')
    assert.ok(link.startsWith('http://weir.test/files/'), link)
    assert.equal(await read(start(), link), 'one')
  })

  it('are deleted when they expire, even after a restart, and make room', async (t) => {
    const { start, time, names } = stage(t)
    const first = start()
    const link = await first.put(Buffer.alloc(900_000), 'image/png')
    await assert.rejects(first.put(Buffer.alloc(900_000), 'image/png'), { code: 'service_unavailable' })
    await first.put(Buffer.alloc(900_000), 'image/png', 'other')
    const second = start()
    await assert.rejects(second.put(Buffer.alloc(900_000), 'image/png'), { code: 'service_unavailable' })
    time.ms += 61_000
    await assert.rejects(read(second, link), { code: 'not_found', message: /expired/ })
    await second.put(Buffer.alloc(900_000), 'image/png')
    assert.equal(names().length, 1)
  })

  it('are deleted a minute after they expire at the latest, even if no other file is stored', async (t) => {
    for (const [linkTtlSeconds, sweepMs] of [
      [3600, 60_000],
      [5, 5000],
    ] as const) {
      t.mock.timers.enable({ apis: ['setInterval'] })
      const { start, time, names } = stage(t, { linkTtlSeconds })
      const store = start()
      await store.put(Buffer.from('one'), 'image/png')
      time.ms += linkTtlSeconds * 1000
      t.mock.timers.tick(sweepMs - 1)
      await new Promise((resolve) => setImmediate(resolve))
      assert.equal(names().length, 1)
      t.mock.timers.tick(1)
      await eventually('it is deleted', () => names().length === 0)
      await store.put(Buffer.from('two'), 'image/png')
      await store.close()
      time.ms += linkTtlSeconds * 1000
      t.mock.timers.tick(sweepMs)
      await new Promise((resolve) => setTimeout(resolve, 20))
      assert.equal(names().length, 1, 'a store that is closed deletes nothing')
      t.mock.timers.reset()
    }
  })

  it('may fill the limit to the byte, and a thousand are deleted at a time', async (t) => {
    const count = 1001
    const { start, time, names } = stage(t, { share: 4096 * count })
    const store = start()
    for (let index = 0; index < count; index++) await store.put(Buffer.from('x'), 'image/png')
    await assert.rejects(store.put(Buffer.from('x'), 'image/png'), { code: 'service_unavailable' })
    time.ms += 60_000
    await store.put(Buffer.from('x'), 'image/png')
    assert.equal(names().length, 2)
  })

  it('give back their room once each, when they have been deleted', async (t) => {
    const { start, time, names } = stage(t)
    const store = start()
    const putMany = async (count: number): Promise<number> => {
      const puts = await Promise.allSettled(
        Array.from({ length: count }, () => store.put(Buffer.alloc(200_000), 'image/png')),
      )
      return puts.filter(({ status }) => status === 'fulfilled').length
    }
    assert.equal(await putMany(6), 5)
    time.ms += 60_000
    // All of them look for expired files at the same time.
    await putMany(6)
    time.ms += 1
    await putMany(6)
    assert.equal(names().length, 5)
  })

  it('keep their room until they have been deleted', async (t) => {
    const { start, time, names } = stage(t)
    const store = start()
    await store.put(Buffer.alloc(900_000), 'image/png')
    time.ms += 60_000
    const [deleting, over] = [gate(), gate()]
    const { rm } = fsPromises
    t.mock.method(fsPromises, 'rm', async (...args: Parameters<typeof rm>) => {
      deleting.open()
      await over.opened
      return rm(...args)
    })
    syncBuiltinESMExports()
    t.after(() => {
      t.mock.restoreAll()
      syncBuiltinESMExports()
    })
    const waiting = store.put(Buffer.alloc(900_000), 'image/png')
    await deleting.opened
    await assert.rejects(store.put(Buffer.alloc(200_000), 'image/png'), { code: 'service_unavailable' })
    over.open()
    await waiting
    assert.equal(names().length, 1)
  })

  it('that have expired are deleted before the room on the disk is measured', async (t) => {
    const counts: number[] = []
    const roomy = roomyDisk()
    const measure = (bytes: number): Promise<void> => {
      counts.push(names().length)
      return roomy.measure(bytes)
    }
    const disk = { ...roomy, measure }
    const { start, time, names } = stage(t, { disk })
    const store = start()
    await store.put(Buffer.from('one'), 'image/png')
    time.ms += 60_000
    await store.put(Buffer.from('two'), 'image/png')
    assert.deepEqual(counts, [0, 0])
  })

  it('have a name only when they are complete, and the secret of their links only when it is on the disk', async (t) => {
    const { start, dataDir, names } = stage(t)
    const steps = await diskSteps(t, dataDir)
    const store = start()
    assert.deepEqual(steps.splice(0), [
      'make files',
      'write link-secret.part',
      'sync link-secret.part',
      'rename link-secret.part to link-secret',
    ])
    await store.put(Buffer.from('one'), 'image/png')
    const [name] = names()
    assert.deepEqual(steps, [`write files/${name}.part`, `rename files/${name}.part to files/${name}`])
  })

  it('are open only while they are read', async (t) => {
    const { start, dataDir } = stage(t)
    const store = start()
    const link = await store.put(Buffer.from('one'), 'image/png')
    assert.equal(await read(store, link), 'one')
    await eventually('it is closed', () => openFiles(dataDir) === 0)
  })

  it('can be read only by their owner, like the secret of their links', async (t) => {
    const { start, dataDir, names } = stage(t)
    await start().put(Buffer.from('one'), 'image/png')
    const mode = (path: string): number => statSync(join(dataDir, path)).mode & 0o777
    assert.deepEqual([mode('files'), mode(`files/${names()[0]}`), mode('link-secret')], [0o700, 0o600, 0o600])
  })

  it('that cannot be stored are refused, leave nothing behind and use no space', async (t) => {
    const { start, names, dataDir } = stage(t)
    const store = start()
    const refusal = { code: 'service_unavailable', message: /could not be stored/ }
    const renaming = t.mock.method(fsPromises, 'rename', () => Promise.reject(new Error('the disk fails')))
    syncBuiltinESMExports()
    await assert.rejects(store.put(Buffer.alloc(MIB), 'image/png'), refusal)
    assert.deepEqual(names(), [])
    renaming.mock.restore()
    syncBuiltinESMExports()
    rmSync(join(dataDir, 'files'), { recursive: true })
    await assert.rejects(store.put(Buffer.alloc(MIB), 'image/png'), refusal)
    mkdirSync(join(dataDir, 'files'))
    await store.put(Buffer.alloc(MIB), 'image/png')
    assert.equal(names().length, 1)
  })

  it('have links that are valid only for their file and time', async (t) => {
    const { start, time } = stage(t, { linkTtlSeconds: 60 })
    time.ms = 1_700_000_000_000
    const store = start()
    const link = new URL(await store.put(Buffer.from('one'), 'image/png'))
    const name = link.pathname.split('/').at(-1) ?? ''
    assert.equal(link.searchParams.get('expires'), '1700000060')
    const found = (await store.open?.(name, link.search.slice(1))) ?? assert.fail()
    found.stream.destroy()
    assert.deepEqual([found.contentType, found.length, found.secondsLeft], ['image/png', 3, 60])
    const incomplete = { code: 'not_found', message: /incomplete/ }
    const signature = link.searchParams.get('signature') ?? ''
    for (const query of [
      '',
      `expires=1700000060`,
      `expires=1700000061&signature=${signature}`,
      `expires=1700000060&signature=${signature.slice(1)}`,
      `expires=1700000060&signature=${signature.toLowerCase()}`,
    ])
      await assert.rejects(async () => store.open?.(name, query), incomplete, query)
  })

  it('expire in the second that their link names, not in the next', async (t) => {
    const { start, time } = stage(t, { linkTtlSeconds: 60 })
    time.ms = Math.ceil(time.ms / 1000) * 1000
    const store = start()
    const link = await store.put(Buffer.from('one'), 'image/png')
    time.ms += 59_999
    assert.equal(await read(store, link), 'one')
    time.ms += 1
    await assert.rejects(read(store, link), { code: 'not_found', message: /expired/ })
  })

  it('make room after a restart as soon as the oldest expires', async (t) => {
    const { start, time, dataDir, names } = stage(t, { share: MIB / 2 })
    const first = start()
    const ages = [30, 0, 45, 15]
    for (const age of ages) {
      const { pathname } = new URL(await first.put(Buffer.alloc(250_000), 'image/png', `workspace ${age}`))
      const written = time.ms / 1000 - age
      utimesSync(join(dataDir, 'files', pathname.split('/').at(-1) ?? ''), written, written)
    }
    const second = start()
    time.ms += 20_000
    await second.put(Buffer.alloc(250_000), 'image/png')
    assert.equal(names().length, 4, 'the one that is 45 s older has gone')
  })

  it('never exceed the limit, even when many are stored at once', async (t) => {
    const { start, names } = stage(t, { share: MIB / 2 })
    const store = start()
    const puts = await Promise.allSettled(
      Array.from({ length: 20 }, (_, owner) => store.put(Buffer.alloc(200_000), 'image/png', `workspace ${owner}`)),
    )
    assert.equal(puts.filter(({ status }) => status === 'fulfilled').length, 5)
    assert.equal(names().length, 5)
  })

  it('of one workspace use half of the room, which the files of others do not reduce', async (t) => {
    const { start } = stage(t)
    const store = start()
    const share = { code: 'service_unavailable', message: /^This workspace has used its share of the file storage/ }
    await store.put(Buffer.alloc(600_000), 'image/png', 'other')
    await store.put(Buffer.alloc(MIB), 'image/png')
    await assert.rejects(store.put(Buffer.from('x'), 'image/png'), share)
    const all = { code: 'service_unavailable', message: /^The file storage is full/ }
    await assert.rejects(store.put(Buffer.alloc(500_000), 'image/png', 'third'), all)
    await store.put(Buffer.alloc(400_000), 'image/png', 'other')

    const disk = { ...roomyDisk(), left: () => MIB, ownerShare: 1 / 2 }
    const small = stage(t, { disk }).start()
    await assert.rejects(small.put(Buffer.alloc(600_000), 'image/png'), share)
    await small.put(Buffer.alloc(500_000), 'image/png')
  })

  it('leave the disk its reserve, even when many are stored at once', async (t) => {
    const space = { size: 4 * MIB, free: 2 * MIB }
    const disk = diskRoom({ space: async () => ({ ...space }), now: () => 0, processes: 1 })
    const { start, names } = stage(t, { share: 2 * MIB, disk })
    const store = start()
    const puts = await Promise.allSettled(
      Array.from({ length: 20 }, (_, owner) => store.put(Buffer.alloc(200_000), 'image/png', `workspace ${owner}`)),
    )
    assert.equal(puts.filter(({ status }) => status === 'fulfilled').length, 5)
    assert.equal(names().length, 5)
    space.free -= 1_000_000
    await assert.rejects(store.put(Buffer.alloc(200_000), 'image/png'), { code: 'service_unavailable' })
    space.free += 1_000_000
    await store.put(Buffer.alloc(200_000), 'image/png')
  })

  it('are refused while the disk cannot be measured', async (t) => {
    const disk = { ...roomyDisk(), measure: () => Promise.reject(new Error('ENOENT')) }
    const { start, names } = stage(t, { disk })
    await assert.rejects(start().put(Buffer.from('one'), 'image/png'), {
      code: 'service_unavailable',
      cause: new Error('ENOENT'),
    })
    assert.deepEqual(names(), [])
  })

  it('are limited in number when they are small', async (t) => {
    const store = stage(t, { share: 4096 * 3 }).start()
    for (let count = 0; count < 3; count++) await store.put(Buffer.from('x'), 'image/png')
    await assert.rejects(store.put(Buffer.from('x'), 'image/png'), { code: 'service_unavailable' })
  })

  it('are deleted at a restart if they are half-written; other files stay and are not served', async (t) => {
    const { start, dataDir, names } = stage(t)
    await start().put(Buffer.from('one'), 'image/webp')
    writeFileSync(join(dataDir, 'files', `${'a'.repeat(32)}.png.part`), 'half')
    writeFileSync(join(dataDir, 'files', 'notes.txt'), 'mine')
    const store = start()
    assert.deepEqual(
      names().filter((name) => !name.endsWith('.webp')),
      ['notes.txt'],
    )
    await assert.rejects(async () => store.open?.('notes.txt', 'expires=1&signature=x'), { code: 'not_found' })
  })

  it('that were deleted by hand give an error with the reason', async (t) => {
    const { start, dataDir, names } = stage(t)
    const store = start()
    const link = await store.put(Buffer.from('one'), 'image/png')
    for (const name of names()) rmSync(join(dataDir, 'files', name))
    await assert.rejects(read(store, link), { code: 'not_found', message: /no longer exists/ })
  })

  it('cannot be opened with a link of another installation', async (t) => {
    const link = await stage(t).start().put(Buffer.from('one'), 'image/png')
    await assert.rejects(read(stage(t).start(), link), { code: 'not_found' })
  })

  it('cannot be used when the secret is damaged: the start fails', (t) => {
    const { start, dataDir } = stage(t)
    writeFileSync(join(dataDir, 'link-secret'), 'short\n')
    assert.throws(() => start(), /link-secret is damaged/)
  })
})
