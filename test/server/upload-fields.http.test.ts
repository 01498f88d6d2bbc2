import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { audioStage, spooled } from '../support/audio-stage.ts'
import { refusalOf } from '../support/chat-stage.ts'
import { eventually } from '../support/waiting.ts'

describe('the fields of an upload', () => {
  it('have one limit together, before the file and after it', async (t) => {
    const { send, engine, weir } = await audioStage(t)
    const half = 'x'.repeat(150 * 1024)
    for (const fileFirst of [false, true]) {
      const refusal = await refusalOf(await send({ unknown: half, other: half }, { fileFirst }))
      assert.deepEqual([refusal.status, refusal.code], [413, 'request_too_large'])
      assert.match(refusal.message, /fields are too large/)
    }
    assert.equal(engine.calls.length, 0)
    await eventually('nothing is left of the uploads', () => spooled(weir).length === 0)
  })

  it('must be valid UTF-8', async (t) => {
    const { weir } = await audioStage(t)
    const form = Buffer.concat([
      Buffer.from('--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('\r\n--b--\r\n'),
    ])
    const response = await weir.call('/audio/transcriptions', {
      method: 'POST',
      body: form,
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    })
    const { code, param } = await refusalOf(response)
    assert.deepEqual([code, param], ['invalid_value', 'prompt'])
  })
})
