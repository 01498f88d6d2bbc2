import { fork } from 'node:child_process'
import type { PullOptions } from './model-files.ts'
import type { PullMessage, PullOrder } from './pull-messages.ts'

/**
 * Downloads a model in a child process: it unpacks and hashes hundreds of megabytes without disturbing the service, and
 * frees its memory when it ends. It ends with this process, and a later pull continues where it stopped.
 */
export function pullInChild(order: PullOrder, { onProgress, signal }: Required<PullOptions>): Promise<void> {
  const child = fork(new URL('./pull-program.ts', import.meta.url), {
    // The HTTP client of the child reads the proxies from its environment.
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
    // Not on 'exit': the last message may arrive after that.
    child.once('close', (code, killedBy) => {
      if (end?.end === 'ready') resolve()
      else reject(new Error(end?.reason ?? `the fetching process ended with ${killedBy ?? code}`))
    })
    child.send(order)
  })
}
