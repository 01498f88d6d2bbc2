import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { describe, it, test } from 'node:test'
import * as fc from 'fast-check'
import { requestText } from '../../src/operate/telemetry/telemetry.ts'
import { anyCharacter } from '../support/any-character.ts'

fc.configureGlobal({ seed: 1 })

const LINE_BYTES = 1024

/** Starts a process that writes log lines to its standard error and then runs `afterwards`. */
function logging(lines: number, afterwards: string): ChildProcess {
  const program = `
    const { logDestination } = await import(${JSON.stringify(new URL('../../src/operate/telemetry/telemetry.ts', import.meta.url).href)})
    const log = logDestination(2)
    for (let line = 0; line < ${lines}; line++) log.write(String(line).padEnd(${LINE_BYTES - 1}, '.') + '\\n')
    ${afterwards}`
  return spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'pipe'] })
}

async function numbersOf(child: ChildProcess): Promise<number[]> {
  let text = ''
  for await (const chunk of child.stderr ?? []) text += String(chunk)
  const lines = text.split('\n').slice(0, -1)
  for (const line of lines) assert.equal(line.length, LINE_BYTES - 1, 'every line is complete')
  return lines.map((line) => Number.parseInt(line, 10))
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

describe('log lines', () => {
  test(
    'are written in order, including the last ones of a process that exits at once',
    { timeout: 30_000 },
    async () => {
      for (const count of [1, 1003]) {
        assert.deepEqual(await numbersOf(logging(count, 'process.exit(0)')), upTo(count))
      }
    },
  )

  test('are all written when flush resolves', { timeout: 30_000 }, async () => {
    const abrupt = 'await log.flush(); process.kill(process.pid, "SIGKILL")'
    assert.deepEqual(await numbersOf(logging(1003, abrupt)), upTo(1003))
  })

  test('are written soon, even when there is only one', { timeout: 30_000 }, async () => {
    const child = logging(1, 'setInterval(() => {}, 1000)')
    const [chunk] = await once(child.stderr ?? child, 'data')
    child.kill()
    assert.equal(String(chunk).length, LINE_BYTES)
  })

  test('are dropped, never cut, once the buffer is full because nothing reads them', { timeout: 60_000 }, async () => {
    const lines = 64 * 1024
    const child = logging(lines, 'process.stdout.write("written\\n"); setTimeout(() => {}, 1000)')
    await once(child.stdout ?? child, 'data')
    const numbers = await numbersOf(child)
    const kept = numbers.length * LINE_BYTES
    assert.ok(kept > 15 * 2 ** 20 && kept < 18 * 2 ** 20, `${kept} bytes were kept`)
    assert.deepEqual(numbers, upTo(numbers.length))
  })
})

describe('the log line of a request', () => {
  it('is the JSON of its fields, its notes and its time, in one line', () => {
    const detail = fc.oneof(fc.string({ unit: anyCharacter }), fc.nat(), fc.constantFrom(null, undefined))
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
