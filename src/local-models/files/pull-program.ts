import { modelFiles, type PullProgress } from './model-files.ts'
import type { PullMessage, PullOrder } from './pull-messages.ts'
import { runtimeFiles } from './runtime-files.ts'

/** A program that downloads one model, or the runtime, for its parent process, reports its progress, and exits. */
process.once('disconnect', () => process.exit(1))
// A terminal or an init system signals the service and its children together. The service decides when this one exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
process.once('message', (order: PullOrder) => {
  void pull(order).then((end) => process.send?.(end, () => process.disconnect()))
})

async function pull(order: PullOrder): Promise<PullMessage> {
  const { environment } = order
  const onProgress = (progress: PullProgress): void => void process.send?.({ progress } satisfies PullMessage)
  try {
    if ('installation' in order) await runtimeFiles(order).pull({ onProgress })
    else await modelFiles(order.directory, { environment }).pull(order.slug, { onProgress })
    return { end: 'ready' }
  } catch (error) {
    return { end: 'failed', reason: (error as Error).message }
  }
}
