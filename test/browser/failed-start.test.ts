import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { consoleStage } from '../support/console-stage.ts'
import { eventually } from '../support/waiting.ts'

/** Everything that keeps a test file from ending. */
const left = (): readonly string[] =>
  process.getActiveResourcesInfo().filter((it) => /Server|Socket|Process|Timeout|Worker/.test(it))

describe('a browser test whose service does not start', () => {
  it('fails at once: nothing that was started before is left open', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const before = left()
    await assert.rejects(consoleStage({ nonsense: true }), /nonsense: is not a known key/)
    await assert.rejects(consoleStage({ server: { port, admin_port: 0 } }), /in use/)
    await eventually('nothing is left', () => left().length === before.length)
    other.close()
  })
})
