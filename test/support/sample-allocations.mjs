// Preloaded into a process that a test measures. Started with an IPC channel, it answers 'start' and 'stop'; the answer
// to 'stop' is the bytes that the main thread has allocated since 'start', whether they were collected or not.
import { Session } from 'node:inspector'
import { isMainThread } from 'node:worker_threads'

const SAMPLE_EVERY_BYTES = 8192

if (isMainThread && process.send) {
  const session = new Session()
  session.connect()
  const sizeOf = ({ selfSize, children }) => children.reduce((sum, child) => sum + sizeOf(child), selfSize)
  process.on('message', (word) => {
    if (word === 'start') {
      const all = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true }
      const options = { samplingInterval: SAMPLE_EVERY_BYTES, ...all }
      session.post('HeapProfiler.startSampling', options, () => process.send?.('started'))
    }
    if (word === 'stop') {
      session.post('HeapProfiler.stopSampling', (error, result) =>
        process.send?.(error ? 0 : sizeOf(result.profile.head)),
      )
    }
  })
  process.channel?.unref()
}
