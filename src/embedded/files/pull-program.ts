import { modelFiles } from './model-files.ts'
import type { PullMessage, PullOrder } from './pull-messages.ts'

/** A program of its own: fetches one model for the process that started it, tells it how that goes, and ends. */
process.once('disconnect', () => process.exit(1))
// Meant for the service, which a terminal or an init system tells together with its children: the service decides.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
process.once('message', (order: PullOrder) => {
  void carryOut(order).then((end) => process.send?.(end, () => process.disconnect()))
})

async function carryOut({ directory, slug, environment }: PullOrder): Promise<PullMessage> {
  try {
    const files = modelFiles(directory, { environment })
    await files.pull(slug, { onProgress: (progress) => process.send?.({ progress } satisfies PullMessage) })
    return { end: 'ready' }
  } catch (error) {
    return { end: 'failed', reason: (error as Error).message }
  }
}
