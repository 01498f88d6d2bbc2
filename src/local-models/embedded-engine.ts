import { ApiError } from '../shared/errors.ts'
import type { MissingFiles } from '../catalog/unavailable-model.ts'
import type { CallEnd, Engine, RunningCall } from '../engines/engine.ts'
import type { RuntimeName } from '../../packages/local-models/contract.ts'
import type { EngineSupervisor } from './supervisor.ts'

/** A model that the service runs itself. Its first call starts the host; after that the host is one more upstream. */
export function embeddedEngine(
  upstream: Engine,
  host: {
    readonly supervisor: EngineSupervisor
    readonly runtime: RuntimeName
    missingFiles(): MissingFiles | undefined
  },
): Engine {
  return {
    usable: () => host.missingFiles() === undefined,
    missingFiles: host.missingFiles,
    // A model that is not downloaded has no engine that could be down.
    addresses: () =>
      host.missingFiles()
        ? []
        : upstream.addresses().map(({ inFlight }) => ({ url: 'embedded', isUp: true, inFlight })),
    retain: upstream.retain,
    run(call) {
      let running: RunningCall | undefined
      let aborted = false
      return {
        ended: begin(),
        isWithEngine: () => running?.isWithEngine() ?? false,
        learn: (cachedTokens) => running?.learn(cachedTokens),
        abort() {
          aborted = true
          running?.abort()
        },
        pause: () => running?.pause(),
        resume: () => running?.resume(),
      }

      async function begin(): Promise<CallEnd> {
        try {
          await host.supervisor.socket(host.runtime)
        } catch (cause) {
          const message = 'The engine of this model could not be started. Try again in a few seconds.'
          return { kind: 'failed', error: new ApiError('upstream_error', message, { cause }), started: false }
        }
        if (aborted) return { kind: 'aborted' }
        running = upstream.run(call)
        return running.ended
      }
    },
    close: () => upstream.close(),
  }
}
