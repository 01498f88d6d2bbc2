import type { Config } from '../../config.ts'
import { fetchMetrics } from '../running-service.ts'
import { mergedMetrics } from './merged-metrics.ts'
import { serviceDirectories, workerDirectory } from '../../cluster/workers/directories.ts'

/** The metrics of this process, or of all workers. One that does not answer is left out. */
export async function metricsOfAll(
  { worker, sharedDir }: Pick<Config, 'worker' | 'sharedDir'>,
  own: { metrics(): Promise<string> },
): Promise<string> {
  if (worker === undefined) return own.metrics()
  const ownDirectory = workerDirectory(sharedDir, worker)
  const texts = await Promise.all(
    serviceDirectories(sharedDir)
      .slice(1)
      .map(async (directory) => {
        const text = directory === ownDirectory ? await own.metrics() : await fetchMetrics(directory)
        return [directory.slice(directory.lastIndexOf('-') + 1), text] as const
      }),
  )
  return mergedMetrics(
    'worker',
    new Map(texts.flatMap(([number, text]) => (text === undefined ? [] : [[number, text]]))),
  )
}
