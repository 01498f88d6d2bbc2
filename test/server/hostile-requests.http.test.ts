import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { echoListener, type EchoListener } from '../support/echo-listener.ts'
import { hostileRequests } from '../support/hostile-requests.ts'
import { rawClient, type RawClient } from '../support/raw-client.ts'
import { answersIn } from '../support/wire-stage.ts'

const NEXT = 'GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
/** One byte at a time takes too long for more. */
const MAX_BYTES_ONE_BY_ONE = 1000

let echo: EchoListener
const ends: (() => Promise<void>)[] = []

before(async () => {
  echo = await echoListener({ after: (end) => void ends.push(end as () => Promise<void>) })
})
after(async () => {
  for (const end of ends) await end()
})
beforeEach(() => {
  echo.served.length = 0
})

async function call(): Promise<RawClient> {
  const client = await rawClient(`http://127.0.0.1:${echo.listener.address.port}`)
  client.socket.setNoDelay(true)
  return client
}

async function atOnce({ socket }: RawClient, bytes: string): Promise<void> {
  socket.write(bytes, 'latin1')
}

async function byteByByte({ socket }: RawClient, bytes: string): Promise<void> {
  for (const byte of bytes) {
    socket.write(byte, 'latin1')
    await nextTurn()
  }
}

describe('a hostile request', () => {
  for (const { name, bytes, statuses, served, goesOn } of hostileRequests) {
    for (const [how, send] of Object.entries({ atOnce, byteByByte })) {
      if (send === byteByByte && bytes.length > MAX_BYTES_ONE_BY_ONE) continue
      it(`${goesOn ? 'is served as what it is' : 'ends its connection'}, ${how}: ${name}`, async () => {
        const client = await call()
        await send(client, bytes + NEXT)
        await client.closed()
        const answers = answersIn(client.received.replaceAll('HTTP/1.1 100 Continue\r\n\r\n', ''))
        assert.deepEqual(
          answers.map(({ status }) => status),
          goesOn ? [...statuses, 200] : statuses,
          client.received,
        )
        assert.deepEqual(echo.served, goesOn ? [...served, 'GET /next '] : served)
        const asked = answers.map(({ body }) => (JSON.parse(body) as { asked?: string }).asked)
        assert.deepEqual(asked.filter(Boolean), echo.served)
      })
    }
  }
})

describe('callers beside hostile ones', () => {
  it('get their own answers', async () => {
    const attackers = await Promise.all(
      hostileRequests.map(async ({ bytes }) => {
        const client = await call()
        await atOnce(client, bytes + NEXT)
        return client
      }),
    )
    await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const response = await fetch(`http://127.0.0.1:${echo.listener.address.port}/own-${index}`)
        assert.deepEqual(await response.json(), { asked: `GET /own-${index} ` })
      }),
    )
    for (const attacker of attackers) {
      await attacker.closed()
      assert.doesNotMatch(attacker.received, /own-/)
    }
  })
})

describe('a caller that disconnects', () => {
  const length = 'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello'
  const chunks = 'POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n'

  for (const [how, end] of Object.entries({
    reset: ({ socket }: RawClient): void => void socket.resetAndDestroy(),
    closed: ({ socket }: RawClient): void => void socket.end(),
  })) {
    it(`gets no partial request served, wherever it stops: ${how}`, async () => {
      for (const text of [length, chunks]) {
        for (let cut = 0; cut < text.length; cut++) {
          const client = await call()
          await atOnce(client, text.slice(0, cut))
          await nextTurn()
          end(client)
          await client.closed()
          assert.equal(client.received, '')
        }
      }
      assert.deepEqual(echo.served, [])
    })
  }
})
