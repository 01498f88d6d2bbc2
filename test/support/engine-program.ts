import { spawn } from 'node:child_process'
import { appendFileSync, existsSync } from 'node:fs'
import { createServer } from 'node:http'

/**
 * An engine as a program, for tests of what starts engines. Its environment says how it behaves, and it writes what
 * happens to the file NOTES: `pid N` for itself and for a child of its own, `call TEXT`, `sleep` and `wake`.
 */
const { NOTES = '', FAIL, SLOW_CALL_MS = '0', IGNORE_SIGTERM, HOLD_READY, LISTEN_WITH, SLEEP_FAILS } = process.env
/** What it takes with its first call. */
const { TAKE_MIB = '0' } = process.env
let taken: Buffer | undefined
const note = (line: string): void => appendFileSync(NOTES, `${line}\n`)

note(`pid ${process.pid}`)
process.stdout.write('loading the model\n')
if (FAIL) {
  process.stderr.write('out of memory\n')
  process.exit(3)
}
if (IGNORE_SIGTERM) process.on('SIGTERM', () => {})
const worker = spawn('sleep', ['infinity'], { stdio: 'ignore' })
note(`pid ${worker.pid}`)
let isAsleep = false

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const path = request.url ?? ''
    if (path === '/health') {
      response.writeHead(HOLD_READY ? 503 : 200).end()
      return
    }
    if (path.startsWith('/sleep') || path === '/wake_up') {
      if (SLEEP_FAILS === path.split('?')[0]) return void response.writeHead(500).end()
      isAsleep = path !== '/wake_up'
      note(isAsleep ? 'sleep' : 'wake')
      response.writeHead(200).end()
      return
    }
    const body = JSON.parse(Buffer.concat(chunks).toString() || '{}') as {
      readonly model: string
      readonly messages?: readonly { readonly content: string }[]
    }
    const text = body.messages?.at(-1)?.content ?? ''
    if (body.messages) note(`call ${text}`)
    taken ??= Buffer.alloc(Number(TAKE_MIB) * 2 ** 20, 1)
    if (text === 'crash') process.exit(9)
    setTimeout(
      () => {
        response.writeHead(isAsleep ? 500 : 200, { 'content-type': 'application/json' })
        response.end(
          JSON.stringify({
            id: 'x',
            object: 'chat.completion',
            created: 1,
            model: body.model,
            choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: text } }],
            usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
          }),
        )
      },
      text === 'quick' ? 0 : Number(SLOW_CALL_MS),
    )
  })
})
// Loading takes until the test creates this file.
const loading = setInterval(() => {
  if (LISTEN_WITH !== undefined && !existsSync(LISTEN_WITH)) return
  clearInterval(loading)
  server.listen(Number(process.argv[2]), '127.0.0.1')
}, 10)
