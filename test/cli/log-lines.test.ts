import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { logLine } from '../../src/cli/terminal/log-lines.ts'
import { openScreen } from '../../src/cli/terminal/screen.ts'
import { terminalLog } from '../../src/cli/terminal/log-lines.ts'

const plain = (_tone: string, text: string): string => text
const marked = (tone: string, text: string): string => `[${tone} ${text}]`
const time = '2026-11-15T22:03:12.345Z'
const request = {
  level: 30,
  time,
  request_id: '0mwiemc8b10b877d84159454f9f1b67f',
  method: 'POST',
  path: '/api/v1/chat/completions',
  workspace: 'acme',
  key_id: 'key_1',
  msg: 'request',
}

describe('the log on a terminal', () => {
  it('has a short line for each request, with its usage and duration', () => {
    const answered = { status: 200, model: 'meta/llama', lane: 'meta/llama', outcome: 'completed' }
    const used = { queue_wait_ms: 200, first_token_ms: 100, duration_ms: 1000, input_tokens: 1200, output_tokens: 128 }
    assert.equal(
      logLine({ ...request, ...answered, ...used }, plain),
      '09:03:12 200 /chat/completions meta/llama 1,200 in, 128 out 1.2 s acme',
    )
    assert.equal(
      logLine({ ...request, status: 429, code: 'rate_limit_exceeded' }, plain),
      '09:03:12 429 /chat/completions acme rate_limit_exceeded',
    )
  })

  it('names the request and the reason when the service or an engine failed', () => {
    assert.equal(
      logLine({ ...request, status: 502, code: 'upstream_error', model: 'meta/llama' }, plain),
      '09:03:12 502 /chat/completions meta/llama acme upstream_error 0mwiemc8b10b877d84159454f9f1b67f',
    )
    const failed = {
      level: 50,
      status: 500,
      err: { message: 'the disk is full', stack: 'Error: …' },
      msg: 'request failed',
    }
    assert.equal(
      logLine({ ...request, ...failed }, plain),
      '09:03:12 500 /chat/completions acme the disk is full 0mwiemc8b10b877d84159454f9f1b67f',
    )
  })

  it('has every other line with its details, in the colour of its level', () => {
    const line = { time, url: 'http://127.0.0.1:9000/v1', healthy: false, msg: 'engine' }
    const shown = [29, 30, 39, 40, 49, 50, 60].map((level) => logLine({ level, ...line }, marked))
    const details = '[dim   url=http://127.0.0.1:9000/v1 healthy=false]'
    assert.deepEqual(
      shown,
      ['[dim engine]', 'engine', 'engine', '[yellow engine]', '[yellow engine]', '[red engine]', '[red engine]'].map(
        (message) => `[dim 09:03:12] ${message}${details}`,
      ),
    )
    assert.equal(logLine({ level: 30, time, msg: 'ready' }, marked), '[dim 09:03:12] ready')
  })

  it('has the colour of the status, and what images and recordings used', () => {
    const shown = (changes: object): string => logLine({ ...request, workspace: undefined, ...changes }, marked)
    assert.deepEqual(
      [
        shown({ status: 399, path: '/api/v10', images: 2, duration_ms: 1 }),
        shown({ status: 400, code: 'no', request_id: 7, audio_ms: 1500, queue_wait_ms: 2 }),
        shown({ status: 499, code: 'no' }),
        shown({ status: 500, code: 'no', msg: 'request failed', err: { message: 'disk' } }),
        shown({ status: 500, model: 7, err: { message: 7 }, input_tokens: '5' }),
      ],
      [
        '[dim 09:03:12] [green 399] /api/v10 2 images 1 ms',
        '[dim 09:03:12] [yellow 400] /chat/completions 1.5 s 2 ms [yellow no]',
        '[dim 09:03:12] [yellow 499] /chat/completions [yellow no]',
        '[dim 09:03:12] [red 500] /chat/completions [red no] [red disk] [dim 0mwiemc8b10b877d84159454f9f1b67f]',
        '[dim 09:03:12] [red 500] /chat/completions [dim 0mwiemc8b10b877d84159454f9f1b67f]',
      ],
    )
  })

  it('is printed above the progress of a download', () => {
    const written: string[] = []
    const terminal = { columns: 80, write: (text: string) => written.push(text), on: () => {}, off: () => {} }
    const screen = openScreen(terminal, { hasBlock: true, paintBlock: (line) => `<${line}>` })
    screen.setBlock(['fetching 10 %'])
    terminalLog(screen, plain).write(`${JSON.stringify({ level: 30, time, msg: 'catalog reloaded', models: 2 })}\n`)
    // One write, so that nothing comes between: up, clear, the line, the block.
    assert.deepEqual(written, [
      '<fetching 10 %>\n',
      '\r\u001B[1A\u001B[0J09:03:12 catalog reloaded  models=2\n<fetching 10 %>\n',
    ])
  })
})
