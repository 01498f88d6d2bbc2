/**
 * A program of its own, which starts an engine and ends with it. It leads a process group that has the engine and all
 * that the engine starts. Its standard input comes from the service: when that closes, because the service has ended
 * or was killed, the whole group ends, so no engine outlives the service.
 */

import { spawn } from 'node:child_process'
import { writeSync } from 'node:fs'

/** The service reads here whether the engine runs, and why it ended. */
const REPORT = 3
const GRACE_MS = 5000

// The service sends signals to the whole group: they are for the engine.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
let order = ''
let isStarted = false
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => {
  order += chunk
  if (isStarted || !order.includes('\n')) return
  isStarted = true
  start(JSON.parse(order) as { command: string[]; env: Record<string, string> })
})
process.stdin.on('close', () => {
  process.kill(-process.pid, 'SIGTERM')
  setTimeout(killGroup, GRACE_MS)
})

function start({ command: [program = '', ...args], env }: { command: string[]; env: Record<string, string> }): void {
  const engine = spawn(program, args, { env, stdio: ['ignore', 'inherit', 'inherit'] })
  engine.on('spawn', () => report({ pid: engine.pid }))
  engine.on('error', ({ message }) => {
    report({ end: `could not be run: ${message}` })
    killGroup()
  })
  engine.on('exit', (code, signal) => {
    report({ end: signal ? `was ended by ${signal}` : `ended with exit code ${code}` })
    // What the engine has started does not outlive it.
    killGroup()
  })
}

function report(news: object): void {
  try {
    writeSync(REPORT, `${JSON.stringify(news)}\n`)
  } catch {
    // The service is gone.
  }
}

/** This process is in the group as well. */
function killGroup(): void {
  process.kill(-process.pid, 'SIGKILL')
}
