import { modelFiles } from './model-files.ts'
import type { PullMessage } from './pull-process.ts'

/** A program of its own: fetches one model for the process that started it, tells it how that goes, and ends. */
const [directory = '', slug = ''] = process.argv.slice(2)
const tell = (message: PullMessage): void => void process.send?.(message)

process.once('disconnect', () => process.exit(1))
// Meant for the service, which a terminal or an init system tells together with its children: the service decides.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
try {
  await modelFiles(directory, { environment: process.env }).pull(slug, { onProgress: (progress) => tell({ progress }) })
  tell({ end: 'ready' })
} catch (error) {
  tell({ end: 'failed', reason: (error as Error).message })
}
process.disconnect()
