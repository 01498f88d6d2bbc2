import { memoryAdmission } from '../../src/queue/memory.ts'
import type { Admission } from '../../src/queue/admission.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { startRedis, type RedisServer } from './redis-server.ts'
import { settledEpoch, testReplica, type TestReplica } from './redis-replica.ts'

/** A way to coordinate lanes. */
export interface AdmissionAdapter {
  readonly name: string
  start(): Promise<void>
  stop(): Promise<void>
  /** A new admission without lanes. */
  open(): { readonly admission: Admission; isReady(): boolean; close(): Promise<void> }
}

const memory: AdmissionAdapter = {
  name: 'memory',
  start: async () => {},
  stop: async () => {},
  open: () => ({ admission: memoryAdmission(systemClock), isReady: () => true, close: async () => {} }),
}

function redis(): AdmissionAdapter {
  let server: RedisServer
  let first: TestReplica
  return {
    name: 'Redis',
    async start() {
      server = await startRedis()
      // An empty Redis admits no requests for one lease.
      first = testReplica(server.url)
      await settledEpoch(first)
    },
    async stop() {
      await first.close()
      await server.remove()
    },
    open() {
      const { admission, close } = testReplica(server.url)
      return { admission, isReady: () => admission.state() === 'joined', close }
    },
  }
}

export const admissionAdapters: readonly AdmissionAdapter[] = [memory, redis()]
