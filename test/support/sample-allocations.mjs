// Preloaded into a process that a test measures. Started with an IPC channel, it answers 'start' and 'stop'; the answer
// to 'stop' is the bytes that the main thread has allocated since 'start', whether they were collected or not, and those
// of them that the collector took for long-lived.
import { Session } from 'node:inspector'
import { GCProfiler } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

const SAMPLE_EVERY_BYTES = 8192

if (isMainThread && process.send) {
  const session = new Session()
  session.connect()
  let collections
  const sizeOf = ({ selfSize, children }) => children.reduce((sum, child) => sum + sizeOf(child), selfSize)
  const oldBytes = ({ heapSpaceStatistics }) =>
    heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space').spaceUsedSize
  const promoted = ({ statistics }) =>
    statistics
      .filter(({ gcType }) => gcType === 'Scavenge')
      .reduce((sum, { beforeGC, afterGC }) => sum + oldBytes(afterGC) - oldBytes(beforeGC), 0)
  process.on('message', (word) => {
    if (word === 'start') {
      collections = new GCProfiler()
      collections.start()
      const all = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true }
      const options = { samplingInterval: SAMPLE_EVERY_BYTES, ...all }
      session.post('HeapProfiler.startSampling', options, () => process.send?.('started'))
    }
    if (word === 'stop') {
      session.post('HeapProfiler.stopSampling', (error, result) =>
        process.send?.({ allocated: error ? 0 : sizeOf(result.profile.head), promoted: promoted(collections.stop()) }),
      )
    }
  })
  process.channel?.unref()
}
