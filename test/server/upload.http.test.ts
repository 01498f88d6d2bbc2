import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { CallerLeft } from '../../src/shared/errors.ts'
import type { Exchange } from '../../src/server/exchange.ts'
import { listen, type Listener } from '../../src/server/server.ts'
import { withUpload } from '../../src/server/uploads/upload.ts'
import { openSpool } from '../../src/server/uploads/spool.ts'
import type { Spool } from '../../src/server/uploads/uploads.ts'
import { rawClient, type RawClient } from '../support/raw-client.ts'
import { roomyDisk } from '../support/roomy-disk.ts'
import { eventually, gate, within } from '../support/waiting.ts'

const QUOTA_BYTES = 64 * 1024
const HEAD = [
  'POST / HTTP/1.1',
  'Host: weir.test',
  'Content-Type: multipart/form-data; boundary=frontier',
  'Content-Length: 1000000',
  '',
  '--frontier',
  'Content-Disposition: form-data; name="file"; filename="a.wav"',
  '',
  '',
].join('\r\n')

function serve(answer: (exchange: Exchange) => Promise<void>): Promise<Listener> {
  const application = { answer, rateOf: async () => undefined, headers: () => ({}), over() {} }
  return listen(application, '127.0.0.1', 0)
}

function urlOf({ address }: Listener): string {
  return `http://127.0.0.1:${address.port}`
}

/** A server that does nothing but take uploads, in front of a real spool whose every step a test can hold up. */
async function uploads(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-upload-'))
  const real = openSpool({ folder: join(folder, 'spool'), maxBytes: 2 * QUOTA_BYTES, disk: roomyDisk() })
  const hold: { open?: Promise<void>; append?: Promise<void> } = {}
  const seen = { opening: 0, appending: 0 }
  const ends: unknown[] = []
  let callers = 0
  const spool: Spool = {
    async open(owner) {
      seen.opening++
      await hold.open
      const file = await real.open(owner)
      return {
        ...file,
        get length() {
          return file.length
        },
        async append(chunks) {
          seen.appending++
          await hold.append
          await file.append(chunks)
        },
      }
    },
  }
  const listener = await serve(async (exchange) => {
    callers++
    exchange.onGone(() => callers--)
    await withUpload(exchange, spool, 1_000_000, async () => {}).then(
      () => ends.push('completed'),
      (error: unknown) => ends.push(error),
    )
  })
  t.after(async () => {
    await listener.close(0)
    rmSync(folder, { recursive: true })
  })
  return {
    hold,
    seen,
    ends,
    callers: () => callers,
    /** The files of the spool that this process holds open. */
    descriptors(): number {
      return readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).startsWith(folder)).length
    },
    /** Resolves if the callers, who have no key here, can use all of their half. */
    async requireWholeQuota(): Promise<void> {
      const file = await real.open('')
      await file.append([Buffer.alloc(QUOTA_BYTES)])
      await file.close()
    },
    async begin(): Promise<RawClient> {
      const client = await rawClient(urlOf(listener))
      client.send(HEAD)
      client.socket.write(Buffer.alloc(1000))
      return client
    },
  }
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}

describe('an upload that is aborted', () => {
  const CALLERS = 20

  for (const step of ['open', 'append'] as const) {
    it(`frees its descriptor and its part of the spool if the disk is still busy (${step})`, async (t) => {
      const { hold, seen, ends, callers, descriptors, requireWholeQuota, begin } = await uploads(t)
      const disk = gate()
      hold[step] = disk.opened
      const clients = await Promise.all(Array.from({ length: CALLERS }, begin))
      const waiting = step === 'open' ? 'opening' : 'appending'
      await eventually('the disk holds up every upload', () => seen[waiting] === CALLERS)
      for (const client of clients) client.leave()
      await eventually('the server has noticed that every caller left', () => callers() === 0)
      disk.open()
      await eventually('every upload has ended', () => ends.length === CALLERS)
      assert.ok(ends.every((end) => end instanceof CallerLeft))
      await eventually('no descriptor is left', () => descriptors() === 0)
      await requireWholeQuota()
    })
  }

  it('does not wait forever if the caller disconnected before the form was read', async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const listener = await serve(async (exchange) => {
      exchange.cut()
      await new Promise<void>((resolve) => exchange.onGone(resolve))
      const spool = { open: () => Promise.reject(new Error('not needed')) }
      await withUpload(exchange, spool, 1000, async () => {}).then(resolve, resolve)
    })
    try {
      const client = await rawClient(urlOf(listener))
      client.send(HEAD)
      assert.ok((await within(10_000, 'the upload ends', promise)) instanceof CallerLeft)
    } finally {
      await listener.close(0)
    }
  })
})
