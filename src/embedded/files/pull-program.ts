import { modelFiles } from './model-files.ts'
import type { PullMessage, PullOrder } from './pull-messages.ts'

/** A program that fetches one model for the process that started it, reports its progress, and ends. */
process.once('disconnect', () => process.exit(1))
// A terminal or an init system signals the service and its children together. The service decides when this one ends.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
process.once('message', (order: PullOrder) => {
  void pull(order).then((end) => process.send?.(end, () => process.disconnect()))
})

async function pull({ directory, slug, environment }: PullOrder): Promise<PullMessage> {
  try {
    const files = modelFiles(directory, { environment })
    await files.pull(slug, { onProgress: (progress) => process.send?.({ progress } satisfies PullMessage) })
    return { end: 'ready' }
  } catch (error) {
    return { end: 'failed', reason: (error as Error).message }
  }
}
