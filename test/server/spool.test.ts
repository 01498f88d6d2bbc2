import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import files, { type FileHandle } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { DiskRoom } from '../../src/shared/disk-room.ts'
import { openSpool } from '../../src/server/uploads/spool.ts'
import type { SpooledFile } from '../../src/server/uploads/uploads.ts'
import { roomyDisk } from '../support/roomy-disk.ts'
import { openFiles } from '../support/open-files.ts'

const SHARE = 'The uploads of this workspace take up its share of the disk. Try again when some of them have finished.'
const FULL = 'There is no room for uploads right now. Try again later.'

function stage(t: TestContext, { maxBytes = 1000, disk = roomyDisk() }: { maxBytes?: number; disk?: DiskRoom } = {}) {
  const parent = mkdtempSync(join(tmpdir(), 'weir-spool-'))
  t.after(() => rmSync(parent, { recursive: true, force: true }))
  const folder = join(parent, 'data', 'spool')
  return { folder, spool: openSpool({ folder, maxBytes, disk }) }
}

/** A disk with this much room, which takes part in every step. */
function scriptedDisk(left: number, ownerShare = 1) {
  const steps: string[] = []
  const fails: { at?: 'measure' | 'write' } = {}
  const disk: DiskRoom = {
    async measure(bytes) {
      steps.push(`measure ${bytes}`)
      if (fails.at === 'measure') throw new Error('cannot be measured')
    },
    left: () => left,
    async write(bytes, write) {
      steps.push(`write ${bytes}`)
      if (fails.at === 'write') throw new Error('ENOSPC')
      return write()
    },
    ownerShare,
  }
  return { disk, steps, fails }
}

async function contentOf(file: SpooledFile, position = 0, bytes = file.length): Promise<string> {
  const into = Buffer.alloc(bytes)
  return into.toString('latin1', 0, await file.read(into, position))
}

const refusal = (message: string) => ({ code: 'service_unavailable', message })
const text = (...pieces: readonly string[]): Buffer[] => pieces.map((piece) => Buffer.from(piece))

describe('an upload on disk', () => {
  it('can be read anywhere, and has everything that was appended, in order', async (t) => {
    const { spool } = stage(t)
    const file = await spool.open('a')
    assert.equal(file.length, 0)
    await file.append(text('one', '', 'two'))
    await file.append([])
    await file.append(text('three'))
    assert.equal(file.length, 11)
    assert.equal(await contentOf(file), 'onetwothree')
    assert.equal(await contentOf(file, 3, 3), 'two')
    assert.equal(await contentOf(file, 6, 100), 'three')
    assert.equal(await contentOf(file, 11, 100), '')
    await file.close()
  })

  it('is complete if the system writes a few bytes at a time', async (t) => {
    const { spool } = stage(t)
    const file = await spool.open('a')
    const handle = await files.open('/dev/null')
    const prototype = Object.getPrototypeOf(handle) as FileHandle
    await handle.close()
    type WriteAt = (
      bytes: Buffer,
      offset: number,
      length: number,
      position: number,
    ) => Promise<{ bytesWritten: number }>
    const whole = prototype.write as WriteAt
    const some: WriteAt = function (this: FileHandle, bytes, offset, length, position) {
      return whole.call(this, bytes, offset, Math.min(length, 2), position)
    }
    const { mock } = t.mock.method(prototype, 'write', some as unknown as FileHandle['write'])
    await file.append(text('river', 'bed'))
    await file.append(text('weir'))
    assert.ok(mock.callCount() > 3)
    assert.equal(await contentOf(file), 'riverbedweir')
    await file.close()
  })

  it('has no name, and can be read by no other user while it has one', async (t) => {
    const { folder, spool } = stage(t)
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    const file = await spool.open('a')
    assert.deepEqual(readdirSync(folder), [])
    assert.equal(openFiles(folder), 1)
    await file.close()
    assert.equal(openFiles(folder), 0)
  })

  it('accepts nothing after it was closed, however often', async (t) => {
    const { spool } = stage(t, { maxBytes: 20 })
    const file = await spool.open('a')
    await file.append(text('1234567890'))
    await Promise.all([file.close(), file.close()])
    await file.close()
    await assert.rejects(file.append(text('x')), /the upload is closed/)
    const next = await spool.open('a')
    await next.append(text('1234567890'))
    await assert.rejects(next.append(text('x')), refusal(SHARE), 'the room was given back once')
    await next.close()
  })
})

describe('the folder of uploads', () => {
  it('is emptied at the start, with folders in it', (t) => {
    const { folder } = stage(t)
    mkdirSync(join(folder, 'left', 'over'), { recursive: true })
    writeFileSync(join(folder, 'left', 'over', 'file'), 'x')
    openSpool({ folder, maxBytes: 1000, disk: roomyDisk() })
    assert.deepEqual(readdirSync(folder), [])
  })

  it('refuses an upload while it is missing', async (t) => {
    const { folder, spool } = stage(t)
    rmSync(folder, { recursive: true })
    await assert.rejects(spool.open('a'), refusal(FULL))
    mkdirSync(folder)
    await (await spool.open('a')).close()
  })
})

describe('an upload that keeps its name', () => {
  it('is refused, and is not left open', async (t) => {
    const { folder, spool } = stage(t)
    const unlink = t.mock.method(files, 'unlink', () => Promise.reject(new Error('EIO')))
    syncBuiltinESMExports()
    t.after(() => {
      unlink.mock.restore()
      syncBuiltinESMExports()
    })
    await assert.rejects(spool.open('a'), refusal(FULL))
    assert.equal(unlink.mock.callCount(), 1)
    assert.equal(openFiles(folder), 0)
  })
})

describe('the room for uploads', () => {
  it('is one limit for all, of which a workspace has half', async (t) => {
    const { spool } = stage(t, { maxBytes: 100 })
    const [a, more, b, c] = await Promise.all(['a', 'a', 'b', 'c'].map((owner) => spool.open(owner)))
    assert.ok(a && more && b && c)
    await a.append([Buffer.alloc(30)])
    await more.append([Buffer.alloc(20)])
    await assert.rejects(more.append([Buffer.alloc(1)]), refusal(SHARE))
    assert.equal(more.length, 20, 'what was refused is not part of it')
    await b.append([Buffer.alloc(50)])
    await assert.rejects(c.append([Buffer.alloc(1)]), refusal(FULL))
    await a.close()
    await c.append([Buffer.alloc(30)])
    await assert.rejects(c.append([Buffer.alloc(1)]), refusal(FULL))
    await Promise.all([more, b, c].map((file) => file.close()))
  })

  it('is at most what the disk has, of which a workspace has its part', async (t) => {
    const { disk } = scriptedDisk(40, 0.75)
    const { spool } = stage(t, { maxBytes: 1000, disk })
    const [a, b] = await Promise.all(['a', 'b'].map((owner) => spool.open(owner)))
    assert.ok(a && b)
    await assert.rejects(a.append([Buffer.alloc(41)]), refusal(FULL))
    await assert.rejects(a.append([Buffer.alloc(31)]), refusal(SHARE))
    await a.append([Buffer.alloc(30)])
    // The room on disk is what is left besides what uploads have already: 30 + 40.
    await b.append([Buffer.alloc(40)])
    await a.close()
    await b.close()
  })

  it('is measured before each write, and refused if the disk cannot be measured or is full', async (t) => {
    const { disk, steps, fails } = scriptedDisk(1000)
    const { folder, spool } = stage(t, { disk })
    const file = await spool.open('a')
    await file.append(text('one', 'two'))
    assert.deepEqual(steps, ['measure 6', 'write 6'])
    for (const at of ['measure', 'write'] as const) {
      fails.at = at
      await assert.rejects(file.append(text('x')), (error: Error) => {
        assert.equal(error.message, FULL)
        assert.match(String(error.cause), at === 'measure' ? /cannot be measured/ : /ENOSPC/)
        return true
      })
    }
    await file.close()
    assert.equal(openFiles(folder), 0)
  })
})
