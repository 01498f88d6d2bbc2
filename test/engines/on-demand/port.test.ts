import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { takePort } from '../../../src/engines/on-demand/port.ts'
import { eventually } from '../../support/waiting.ts'

/** Another program that listens on a port. */
async function otherProgram(t: TestContext) {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { server, port: (server.address() as AddressInfo).port }
}

describe('the port of an engine', () => {
  it('is taken as soon as an engine that was just killed has let it go, and is free again when it was released', async (t) => {
    const { server, port } = await otherProgram(t)
    const before = performance.now()
    const taking = takePort(port)
    setImmediate(() => server.close())
    const taken = await taking
    assert.ok('release' in taken)
    assert.ok(performance.now() - before < 10_000, 'it looks again soon')
    const second = await takePort(port)
    assert.match('problem' in second ? second.problem : '', /another Weir service/)
    taken.release()
    await eventually('it is free', async () => {
      const next = await takePort(port)
      if ('release' in next) next.release()
      return 'release' in next
    })
  })

  it('that another program keeps is given up after a second, and is not held for an engine', async (t) => {
    const { port } = await otherProgram(t)
    const problem = `port ${port} on 127.0.0.1 is in use by another process`
    const before = performance.now()
    assert.deepEqual(await takePort(port), { problem })
    assert.ok(performance.now() - before >= 990, 'an engine that was killed may have it for a moment')
    await eventually('the reason is still the same', async () => {
      const next = await takePort(port)
      return 'problem' in next && next.problem === problem
    })
  })
})
