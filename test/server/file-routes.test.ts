import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import type { Exchange } from '../../src/server/exchange.ts'
import { fileRoutes } from '../../src/inference/routes/files.ts'
import type { FileStore } from '../../src/server/files/files.ts'

describe('a file that a link opens', () => {
  it('is only displayed: it runs no script, has the type it declares, and is cached no longer than its link', async () => {
    const opened = { contentType: 'image/png', length: 3, secondsLeft: 7, stream: Readable.from(['abc']) }
    const files = { open: async () => opened } as unknown as FileStore
    let sent: Record<string, string> = {}
    const exchange = {
      query: '',
      async sendStream(_stream: unknown, headers: Record<string, string>) {
        sent = headers
      },
    } as unknown as Exchange
    await fileRoutes(files)[0]?.answer(exchange, { name: 'x.png' })
    assert.deepEqual(sent, {
      'Content-Type': 'image/png',
      'Content-Length': '3',
      'Cache-Control': 'private, max-age=7, immutable',
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': "default-src 'none'; sandbox",
    })
  })

  it('is not offered by a store that serves its links itself', () => {
    assert.deepEqual(fileRoutes(undefined), [])
    assert.deepEqual(fileRoutes({ put: async () => '', close: async () => {} }), [])
  })
})
