import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Exchange } from '../../src/server/exchange.ts'
import { IncomingRequest } from '../../src/server/incoming-request.ts'
import { withUpload } from '../../src/server/uploads/upload.ts'
import type { Spool, SpooledFile } from '../../src/server/uploads/uploads.ts'

/** A form with one file, which arrives at once, and a disk that takes its time. */
function stage() {
  const events: string[] = []
  const form = '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nsound\r\n--b--\r\n'
  const headers = { 'content-type': 'multipart/form-data; boundary=b', 'content-length': String(form.length) }
  const message = Object.assign(Readable.from([Buffer.from(form)]), { headers, complete: true })
  const request = new IncomingRequest(message as unknown as IncomingMessage, '')
  const file = {
    length: 0,
    async append(chunks: readonly Buffer[]) {
      events.push('write')
      await sleep(50)
      file.length += chunks.reduce((sum, { length }) => sum + length, 0)
      events.push('written')
    },
    async close() {
      events.push('closed')
    },
  }
  const spool: Spool = { open: async () => file as unknown as SpooledFile }
  return { events, spool, exchange: { request } as unknown as Exchange }
}

describe('an upload', () => {
  it('is used only when its last bytes are on disk, and closed afterwards', async () => {
    const { events, spool, exchange } = stage()
    await withUpload(exchange, spool, 1000, async (upload) => {
      events.push(`used with ${upload.file?.length} bytes`)
    })
    assert.deepEqual(events, ['write', 'written', 'used with 5 bytes', 'closed'])
  })

  it('is closed when its use fails', async () => {
    const { events, spool, exchange } = stage()
    await assert.rejects(
      withUpload(exchange, spool, 1000, () => Promise.reject(new Error('no'))),
      /no/,
    )
    assert.equal(events.at(-1), 'closed')
  })
})
