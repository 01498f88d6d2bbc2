import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createParser } from 'eventsource-parser'
import { eventSplitter } from '../../src/shared/event-stream.ts'
import { simulationSeed } from '../simulation/seed.ts'
import { chanceOf, type Chance } from '../support/fuzz/chance.ts'

const seed = simulationSeed()
const STREAMS = 5000

const FIELDS = ['data', 'event', 'id', 'retry', '', 'dat', 'data2', 'DATA', ' data']
const VALUES = ['', '1', '{"a":1}', 'a: b', ' ', '\u00c3\u00a9', 'x'.repeat(200), '\0', '[DONE]', '\t']
const ENDS = ['\n', '\r\n', '\r']

function lineOf(chance: Chance): string {
  if (chance.is(0.3)) return ''
  const field = chance.is(0.6) ? 'data' : chance.pick(FIELDS)
  return chance.is(0.1) ? field : `${field}:${chance.is(0.7) ? ' ' : ''}${chance.pick(VALUES)}`
}

/** The events that Weir reads if a line by itself is never enough, as for a client of the standard. */
function ours(chunks: readonly Buffer[]): string[] {
  const events: string[] = []
  const split = eventSplitter((data, isWhole) => {
    if (isWhole) events.push(data)
    return isWhole
  })
  for (const chunk of chunks) split(chunk)
  return events
}

function theirs(chunks: readonly Buffer[]): string[] {
  const events: string[] = []
  const parser = createParser({ onEvent: ({ data }) => void events.push(data) })
  for (const chunk of chunks) parser.feed(chunk.toString('latin1'))
  return events
}

describe(`an event stream, WEIR_SEED=${seed}`, () => {
  it(`[E2] has the events that eventsource-parser finds, however it is cut, in ${STREAMS} streams`, () => {
    let seen = 0
    for (let input = 0; input < STREAMS; input++) {
      const chance = chanceOf(seed, input)
      const lines = [...Array.from({ length: chance.below(30) }, () => lineOf(chance)), '', 'data: end', '', '', ':']
      const text = lines.map((line) => line + chance.pick(ENDS)).join('')
      const bytes = Buffer.from(`${chance.is(0.1) ? '\u00ef\u00bb\u00bf' : ''}${text}`, 'latin1')
      const chunks: Buffer[] = []
      for (let from = 0; from < bytes.length;) {
        // The other parser finds a byte order mark only if it comes in one piece.
        const to = from + (from === 0 ? 3 : 1) + chance.below(40)
        chunks.push(bytes.subarray(from, to))
        from = to
      }
      const events = ours(chunks)
      seen += events.length
      assert.deepEqual(events, theirs(chunks), `input ${input}: ${JSON.stringify(bytes.toString('latin1'))}`)
    }
    assert.ok(seen > STREAMS * 2, `${seen} events`)
  })

  it('ends a line once, also if nothing comes between its carriage return and its line feed', () => {
    const chunks = ['data: a\r', '', '\ndata: b\r\n\r\n'].map((text) => Buffer.from(text))
    assert.deepEqual(ours(chunks), ['a\nb'])
  })

  it('has events of up to 8 MiB, of one line or of more', () => {
    const tooLarge = new RangeError('the engine sent an event larger than 8 MiB')
    const limit = 8 * 1024 * 1024
    const line = eventSplitter(() => true)
    line(Buffer.alloc(limit, 'x'))
    assert.throws(() => line(Buffer.from('x')), tooLarge)

    const events: number[] = []
    const lines = eventSplitter((data, isWhole) => isWhole && events.push(data.length) > 0)
    const half = Buffer.from(`data: ${'x'.repeat(limit / 2 - 1)}\n`)
    for (const chunk of [half, half, Buffer.from('\n'), half, half]) lines(chunk)
    assert.throws(() => lines(Buffer.from('x')), tooLarge)
    assert.deepEqual(events, [limit - 1])
  })
})
