import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { newRequestId } from '../../src/server/request-id.ts'
import { requestText } from '../../src/server/request-line.ts'

fc.configureGlobal({ seed: 1 })

describe('the log line of a request', () => {
  it('is the JSON of its fields, its notes and its time, in one line', () => {
    const detail = fc.oneof(fc.string({ unit: 'binary' }), fc.nat(), fc.constantFrom(null, undefined))
    const ofLine = fc.record({ path: detail, workspace: detail }, { requiredKeys: [] })
    const ofNotes = fc.record({ model: detail, first_token_ms: detail }, { requiredKeys: [] })
    const time = fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
    fc.assert(
      fc.property(ofLine, ofNotes, time, (line, notes, at) => {
        const text = requestText({ status: 200, ...line }, notes, at.getTime())
        const fields = { level: 30, time: at.toISOString(), status: 200, ...line, ...notes, msg: 'request' }
        assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(fields)))
        assert.equal(text.indexOf('\n'), text.length - 1)
      }),
    )
  })
})

describe('the id of a request', () => {
  it('is 32 letters and digits, in the order of time, and unique', () => {
    const ids = Array.from({ length: 2000 }, newRequestId)
    assert.equal(new Set(ids).size, ids.length)
    assert.ok(ids.every((id) => /^[0-9a-z]{9}[0-9a-f]{23}$/.test(id)))
    const times = ids.map((id) => id.slice(0, 9))
    assert.deepEqual(times, times.toSorted())
    assert.ok(Math.abs(Number.parseInt(times.at(-1) ?? '', 36) - Date.now()) < 60_000)
  })
})
