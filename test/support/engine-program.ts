import { spawn } from 'node:child_process'
import { appendFileSync, existsSync } from 'node:fs'
import { createServer } from 'node:http'

/**
 * An engine as a program, for tests of what starts engines. Its environment says how it behaves, and it writes what
 * happens to the file NOTES: `pid N` for itself and for a child of its own, `call TEXT`, `sleep`, `wake` and `end`.
 */
const { NOTES = '', FAIL, IGNORE_SIGTERM, HOLD_READY, SLEEP_FAILS } = process.env
/** It listens, and answers calls, once these files exist. */
const { LISTEN_WITH, ANSWER_WITH } = process.env
/** What it takes with its first call, and how long a process lives that it leaves behind. */
const { TAKE_MIB = '0', ESCAPE_S } = process.env
let taken: Buffer | undefined
const note = (line: string): void => appendFileSync(NOTES, `${line}\n`)

note(`pid ${process.pid}`)
process.stdout.write('loading the model\n')
if (FAIL) {
  process.stderr.write('out of memory\n')
  process.exit(3)
}
process.on('SIGTERM', () => {
  if (IGNORE_SIGTERM) return
  note('end')
  process.exit()
})
const worker = spawn('sleep', ['infinity'], { stdio: 'ignore' })
note(`pid ${worker.pid}`)
// It leaves the process group, and has the output of the engine open.
if (ESCAPE_S) spawn('sleep', [ESCAPE_S], { stdio: 'inherit', detached: true }).unref()
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
    const answer = (): void => {
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
    }
    onceThere(ANSWER_WITH, answer)
  })
})
onceThere(LISTEN_WITH, () => server.listen(Number(process.argv[2]), '127.0.0.1'))

/** Files are how the test says that it may go on. */
function onceThere(file: string | undefined, then: () => void): void {
  if (file === undefined || existsSync(file)) then()
  else setTimeout(onceThere, 10, file, then)
}
