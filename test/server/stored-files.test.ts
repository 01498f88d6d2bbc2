import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import type { DiskRoom } from '../../src/shared/disk-room.ts'
import { piecesOf, type StoredFiles } from '../../src/server/files/stored-files.ts'
import { storedOnDisk } from '../../src/server/files/stored-on-disk.ts'
import type { ByteSource } from '../../src/server/uploads/uploads.ts'
import { diskSteps } from '../support/disk-steps.ts'
import { openFiles } from '../support/open-files.ts'
import { roomyDisk } from '../support/roomy-disk.ts'
import { storedInStub } from '../support/stored-in-s3.ts'
import { eventually } from '../support/waiting.ts'

/** Bytes that can be read anywhere, at most so many at a time. */
function sourceOf(content: string, most = Infinity): ByteSource {
  const bytes = Buffer.from(content)
  return {
    length: bytes.length,
    read: async (into, position) => bytes.copy(into, 0, position, Math.min(bytes.length, position + most)),
  }
}

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-stored-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const stores: Readonly<Record<string, (t: TestContext) => Promise<StoredFiles>>> = {
  'on disk': async (t) => storedOnDisk(join(folderFor(t), 'files'), roomyDisk()),
  'in a bucket': async (t) => (await storedInStub(t)).stored,
}

for (const [where, open] of Object.entries(stores)) {
  describe(`a file ${where}`, () => {
    it('is read in any part, replaced, and removed once or twice', async (t) => {
      const stored = await open(t)
      t.after(() => stored.close())
      const part = async (start: number, end: number) => text(await stored.read('one', start, end))
      await stored.write('one', sourceOf('0123456789', 3))
      assert.deepEqual([await part(0, 10), await part(2, 5), await part(9, 10)], ['0123456789', '234', '9'])
      assert.deepEqual([await part(5, 5), await part(6, 5)], ['', ''])
      await stored.write('one', sourceOf('new'))
      assert.equal(await part(0, 3), 'new')
      await stored.remove('one')
      await stored.remove('one')
      await assert.rejects(stored.read('one', 0, 1), { code: 'not_found' })
    })
  })
}

describe('a file on disk', () => {
  it('can be read by its owner only, and leaves nothing else behind', async (t) => {
    const folder = join(folderFor(t), 'files')
    const stored = storedOnDisk(folder, roomyDisk())
    await stored.write('one', sourceOf('content'))
    assert.deepEqual(readdirSync(folder).toSorted(), ['one', 'place'])
    const modes = [folder, join(folder, 'one'), join(folder, 'place')].map((path) => statSync(path).mode & 0o777)
    assert.deepEqual(modes, [0o700, 0o600, 0o600])
    assert.equal(storedOnDisk(folder, roomyDisk()).place, stored.place)
    assert.equal(readFileSync(join(folder, 'place'), 'utf8'), stored.place)
  })

  it('is on the disk before it has its name, and its name and its folder are before it counts as written', async (t) => {
    const around = folderFor(t)
    const steps = await diskSteps(t, around)
    // The names of files that are not complete yet are random.
    const taken = (): string[] =>
      steps.splice(0).map((step) => step.replaceAll(/(\w+)\.[-0-9a-f]{36}(\.part)?/g, '$1.part'))
    const stored = storedOnDisk(join(around, 'files'), roomyDisk())
    assert.deepEqual(taken(), [
      'make files',
      'sync .',
      'write files/place.part',
      'sync files/place.part',
      'link files/place.part to files/place',
      'remove files/place.part',
    ])
    await stored.write('one', sourceOf('x'.repeat(100_000)))
    assert.deepEqual(taken(), [
      'write files/one.part',
      'sync files/one.part',
      'rename files/one.part to files/one',
      'sync files',
    ])
    storedOnDisk(join(around, 'files'), roomyDisk())
    assert.deepEqual(
      taken().filter((step) => step.startsWith('make') || step === 'sync .'),
      [],
      'the folder is there already',
    )
  })

  it('leaves no file open, written or not, read or missing', async (t) => {
    const around = folderFor(t)
    const stored = storedOnDisk(join(around, 'files'), roomyDisk())
    await stored.write('one', sourceOf('content'))
    assert.equal(openFiles(around), 0)
    await assert.rejects(stored.write('two', { length: 5, read: async () => 0 }))
    await assert.rejects(stored.read('two', 0, 1))
    assert.equal(openFiles(around), 0)
    assert.equal(await text(await stored.read('one', 0, 4)), 'cont')
    const unread = await stored.read('one', 0, 4)
    unread.destroy()
    await eventually('both readers have closed it', () => openFiles(around) === 0)
  })

  it('may take all room beside the reserve and no more; one that is refused leaves nothing behind', async (t) => {
    const folder = join(folderFor(t), 'files')
    const steps: string[] = []
    const disk: DiskRoom = {
      measure: async (bytes) => void steps.push(`measure ${bytes}`),
      left: () => 65_536,
      write(bytes, write) {
        steps.push(`write ${bytes}`)
        return write()
      },
      ownerShare: 1,
    }
    const stored = storedOnDisk(folder, disk)
    await stored.write('one', sourceOf('x'.repeat(65_537)))
    assert.deepEqual(steps, ['measure 65536', 'write 65536', 'measure 1', 'write 1'])
    const full = storedOnDisk(folder, { ...disk, left: () => 65_535 })
    const failed = { code: 'service_unavailable', message: 'The file could not be stored. Try again later.' }
    await assert.rejects(full.write('two', sourceOf('x'.repeat(65_536))), failed)
    await assert.rejects(stored.write('two', { length: 5, read: async () => 0 }), failed)
    assert.deepEqual(readdirSync(folder).toSorted(), ['one', 'place'])
  })

  it('has the room that the disk has now, and is refused early if that is too little', async (t) => {
    let left = 7.5
    const measured: number[] = []
    const disk = { ...roomyDisk(), measure: async (bytes: number) => void measured.push(bytes), left: () => left }
    const stored = storedOnDisk(join(folderFor(t), 'files'), disk)
    assert.equal(await stored.room(7), 7)
    left = 7
    assert.equal(await stored.room(7), 7)
    const failed = { code: 'service_unavailable', message: 'The file could not be stored. Try again later.' }
    await assert.rejects(stored.room(8), failed)
    assert.deepEqual(measured, [7, 7, 8])
    const broken = { ...disk, measure: () => Promise.reject(new Error('the disk fails')) }
    await assert.rejects(storedOnDisk(join(folderFor(t), 'files'), broken).room(1), failed)
  })

  it('that cannot be read for another reason is not reported as missing', async (t) => {
    const folder = join(folderFor(t), 'files')
    const stored = storedOnDisk(folder, roomyDisk())
    await assert.rejects(stored.read('x'.repeat(300), 0, 1), { code: 'ENAMETOOLONG' })
  })
})

describe('a file in a bucket', () => {
  it('has room, however large it is', async (t) => {
    const { stored } = await storedInStub(t)
    t.after(() => stored.close())
    assert.ok((await stored.room(1e15)) > 1e15)
  })

  it('is written again after a failure, once, with its type', async (t) => {
    const { stored, bucket } = await storedInStub(t)
    t.after(() => stored.close())
    bucket.failures.push(500)
    await stored.write('one', sourceOf('content'))
    assert.deepEqual(
      [...bucket.objects].map(([path, { bytes, contentType }]) => [path, bytes.toString(), contentType]),
      [['/bucket/weir/batches/one', 'content', 'application/jsonl']],
    )
    bucket.failures.push(500, 500)
    await assert.rejects(stored.write('one', sourceOf('content')), {
      code: 'service_unavailable',
      message: 'The file could not be stored. Try again later.',
    })
    assert.equal(bucket.failures.length, 0)
    assert.equal(stored.place, `s3 ${bucket.url}/bucket/weir/`)
  })

  it('is not missing because the bucket fails', async (t) => {
    const { stored, bucket } = await storedInStub(t)
    t.after(() => stored.close())
    for (const call of [() => stored.read('one', 0, 1), () => stored.remove('one')]) {
      bucket.failures.push(404)
      await assert.rejects(call(), /^Error: the file storage answered with status 404$/)
    }
  })
})

describe('the pieces of a source', () => {
  it('are 64 KiB at most, and all of its bytes', async () => {
    const lengths: number[] = []
    for await (const { length } of piecesOf(sourceOf('x'.repeat(150_000)))) lengths.push(length)
    assert.deepEqual(lengths, [65_536, 65_536, 18_928])
  })
})
