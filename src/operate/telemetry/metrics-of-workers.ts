import type { Config } from '../../config.ts'
import { fetchMetrics } from '../running-service.ts'
import type { MetricName } from './metric-table.ts'
import type { MetricFamily, MetricSample } from './metrics.ts'
import { serviceDirectories, workerDirectory } from '../../cluster/workers/directories.ts'

/** The metrics of this process, or of all workers. One that does not answer is left out. */
export async function metricsOfAll(
  { worker, sharedDir }: Pick<Config, 'worker' | 'sharedDir'>,
  own: { metrics(): Promise<readonly MetricFamily[]> },
): Promise<readonly MetricFamily[]> {
  if (worker === undefined) return own.metrics()
  const ownDirectory = workerDirectory(sharedDir, worker)
  const ofWorkers = await Promise.all(
    serviceDirectories(sharedDir)
      .slice(1)
      .map(async (directory) => {
        const families = directory === ownDirectory ? await own.metrics() : await fetchMetrics(directory)
        return [directory.slice(directory.lastIndexOf('-') + 1), families ?? []] as const
      }),
  )
  const merged = new Map<MetricName, MetricSample[]>()
  for (const [number, families] of ofWorkers) {
    for (const { name, samples } of families) {
      merged.set(name, [...(merged.get(name) ?? []), ...samples.map((sample) => labelled(sample, number))])
    }
  }
  return Array.from(merged, ([name, samples]) => ({ name, samples }))
}

/** Every sample names the worker that it is of. */
function labelled({ label, value }: MetricSample, worker: string): MetricSample {
  const others = label === '' ? '' : `,${label.slice(1, -1)}`
  return { label: `{worker="${worker}"${others}}`, value }
}
