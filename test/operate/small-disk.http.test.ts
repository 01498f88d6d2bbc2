import assert from 'node:assert/strict'
import { readdirSync, statfsSync } from 'node:fs'
import { after, before, describe, it, type TestContext } from 'node:test'
import { audioStage, silentWav, spooled, transcriptions } from '../support/audio-stage.ts'
import { rawClient, type RawClient } from '../support/raw-client.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { smallDisk } from '../support/small-disk.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry, type TestWeir } from '../support/weir.ts'

const MIB = 2 ** 20
const DISK_BYTES = 96 * MIB
const RESERVE_BYTES = DISK_BYTES / 4
/** Together they are larger than the disk. */
const UPLOADS = 42
const UPLOAD_BYTES = 3 * MIB

const FILE_PART = '--frontier\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
const FORM_END = '\r\n--frontier\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--frontier--\r\n'

function uploadHead(key: string): string {
  const length = FILE_PART.length + UPLOAD_BYTES + FORM_END.length
  return `POST /api/v1${transcriptions} HTTP/1.1\r\nHost: weir.test\r\nAuthorization: Bearer ${key}\r\nContent-Type: multipart/form-data; boundary=frontier\r\nContent-Length: ${length}\r\n\r\n${FILE_PART}`
}

describe('a small data disk', () => {
  let disk: ReturnType<typeof smallDisk>
  before(() => (disk = smallDisk(DISK_BYTES)))
  after(() => disk?.remove())

  const free = (): number => {
    const { bavail, bsize } = statfsSync(disk?.folder ?? '')
    return bavail * bsize
  }

  async function stage(t: TestContext) {
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    const audio = await audioStage(t, {
      disk: disk?.folder ?? assert.fail(),
      models: [modelEntry([engine.url])],
    })
    return { ...audio, other: await otherKey(audio.weir) }
  }

  async function otherKey(weir: TestWeir): Promise<string> {
    await weir.admin('POST', '/admin/v1/workspaces', { name: 'other' })
    const created = await weir.admin('POST', '/admin/v1/keys', { workspace: 'other' })
    return ((await created.json()) as { key: string }).key
  }

  it('serves all callers while one workspace has more unfinished uploads than fit, and loses nothing', async (t) => {
    if (!disk) return t.skip('mounting a small disk needs root')
    const { weir, send, other } = await stage(t)
    const before = free()
    const taken = (): number => before - free()
    const clients: RawClient[] = []
    const refused = (): RawClient[] => clients.filter(({ received }) => received.includes('\r\n\r\n{'))
    const unfinishedBytes = (): number => (clients.length - refused().length) * UPLOAD_BYTES
    for (let upload = 0; upload < UPLOADS; upload++) {
      const client = await rawClient(weir.base)
      clients.push(client)
      client.send(uploadHead(weir.key))
      client.socket.write(Buffer.alloc(UPLOAD_BYTES))
      await eventually('it is on disk or refused', () => taken() >= unfinishedBytes(), 60_000)
    }
    await eventually('the disk has nothing of refused ones', () => taken() < unfinishedBytes() + MIB, 60_000)
    const half = (before - RESERVE_BYTES) / 2
    assert.ok(unfinishedBytes() <= half && unfinishedBytes() > half - 2 * UPLOAD_BYTES, `${unfinishedBytes()} bytes`)
    for (const { received } of refused()) {
      assert.match(received, /^HTTP\/1\.1 503 /)
      assert.match(received, /\r\nRetry-After: 2\r\n/)
      assert.match(
        received,
        /"message":"The uploads of this workspace take up its share of the disk\..*"code":"service_unavailable"/,
      )
    }
    for (const key of [other, weir.key]) {
      const answer = await weir.chat({}, { key })
      assert.equal(answer.status, 200, await answer.text())
    }
    const answer = await send({}, { key: other, clip: silentWav(20 * MIB) })
    assert.equal(answer.status, 200, await answer.text())
    for (const client of clients) client.leave()
    await eventually('nothing is left of them', () => spooled(weir).length === 0)
    const again = await send({}, { clip: silentWav(20 * MIB) })
    assert.equal(again.status, 200, await again.text())
  })

  it('has its space back after a stop in the middle of uploads', async (t) => {
    if (!disk) return t.skip('mounting a small disk needs root')
    const before = free()
    const { weir } = await stage(t)
    const client = await rawClient(weir.base)
    client.send(uploadHead(weir.key))
    client.socket.write(Buffer.alloc(MIB))
    await eventually('the upload is on disk', () => spooled(weir).length > 0)
    await weir.stop()
    assert.deepEqual(readdirSync(disk.folder), [])
    assert.ok(before - free() < 64 * 1024, 'nothing holds the space of the upload')
    client.leave()
  })
})
