import { fork } from 'node:child_process'
import type { PullOptions } from './model-files.ts'
import type { PullMessage, PullOrder } from './pull-messages.ts'

/**
 * Fetches a model in a process of its own: hundreds of megabytes are unpacked and hashed beside the service, and what
 * memory that took is given back. It ends with the process that started it, and goes on another time where it was cut.
 */
export function pullApart(order: PullOrder, { onProgress, signal }: Required<PullOptions>): Promise<void> {
  const child = fork(new URL('./pull-program.ts', import.meta.url), {
    // Proxies are looked up there by the HTTP client itself.
    env: order.environment,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    signal,
    killSignal: 'SIGKILL',
  })
  return new Promise((resolve, reject) => {
    let end: Exclude<PullMessage, { progress: unknown }> | undefined
    child.on('message', (message: PullMessage) => {
      if ('progress' in message) onProgress(message.progress)
      else end = message
    })
    child.once('error', reject)
    // Not as it exits: what it said last may come after that.
    child.once('close', (code, killedBy) => {
      if (end?.end === 'ready') resolve()
      else reject(new Error(end?.reason ?? `the program that fetches it ended with ${killedBy ?? code}`))
    })
    child.send(order)
  })
}
