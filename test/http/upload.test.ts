import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { CallerLeft } from '../../src/core/errors.ts'
import { Exchange } from '../../src/http/exchange.ts'
import { withUpload } from '../../src/http/upload.ts'
import { openSpool } from '../../src/media/spool.ts'
import type { Spool } from '../../src/ports/uploads.ts'
import { exchangeListener } from '../support/exchange-listener.ts'
import { rawClient, type RawClient } from '../support/raw-client.ts'
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

/** A server that does nothing but take uploads, in front of a real spool whose every step a test can hold up. */
async function uploads(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-upload-'))
  const real = openSpool(join(folder, 'spool'), QUOTA_BYTES)
  const hold: { open?: Promise<void>; append?: Promise<void> } = {}
  const seen = { opening: 0, appending: 0 }
  const ends: unknown[] = []
  const connections = new Set<Socket>()
  const spool: Spool = {
    async open() {
      seen.opening++
      await hold.open
      const file = await real.open()
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
  const server = createServer((request, response) => {
    const exchange = new Exchange(request, response, exchangeListener())
    connections.add(request.socket)
    request.socket.once('close', () => {
      exchange.leave()
      connections.delete(request.socket)
    })
    withUpload(exchange, spool, 1_000_000, async () => {}).then(
      () => ends.push('completed'),
      (error: unknown) => ends.push(error),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true })
  })
  return {
    hold,
    seen,
    ends,
    connections,
    /** The files of the spool that this process holds open. */
    descriptors(): number {
      return readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).startsWith(folder)).length
    },
    /** Resolves if the whole quota can be used. */
    async requireWholeQuota(): Promise<void> {
      const file = await real.open()
      await file.append([Buffer.alloc(QUOTA_BYTES)])
      await file.close()
    },
    async begin(): Promise<RawClient> {
      const client = await rawClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
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
    it(`gives back its descriptor and its share of the spool if the disk is still busy (${step})`, async (t) => {
      const { hold, seen, ends, connections, descriptors, requireWholeQuota, begin } = await uploads(t)
      const disk = gate()
      hold[step] = disk.opened
      const clients = await Promise.all(Array.from({ length: CALLERS }, begin))
      const waiting = step === 'open' ? 'opening' : 'appending'
      await eventually('the disk holds up every upload', () => seen[waiting] === CALLERS)
      for (const client of clients) client.leave()
      await eventually('the server has noticed that every caller left', () => connections.size === 0)
      disk.open()
      await eventually('every upload has ended', () => ends.length === CALLERS)
      assert.ok(ends.every((end) => end instanceof CallerLeft))
      await eventually('no descriptor is left', () => descriptors() === 0)
      await requireWholeQuota()
    })
  }

  it('does not wait for ever if the caller left before the form was read', async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const server = createServer((request, response) => {
      const exchange = new Exchange(request, response, exchangeListener())
      request.on('error', () => {})
      request.socket.once('close', () => exchange.leave())
      request.once('close', () => {
        withUpload(exchange, { open: () => Promise.reject(new Error('not needed')) }, 1000, async () => {}).then(
          resolve,
          resolve,
        )
      })
      request.socket.resetAndDestroy()
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    try {
      const client = await rawClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      client.send(HEAD)
      assert.ok((await within(10_000, 'the upload ends', promise)) instanceof CallerLeft)
    } finally {
      server.close()
    }
  })
})
