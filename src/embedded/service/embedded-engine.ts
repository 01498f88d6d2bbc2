import { ApiError } from '../../core/errors.ts'
import type { CallEnd, Engine, RunningCall } from '../../ports/engine.ts'
import type { EngineSupervisor } from './supervisor.ts'
import type { RuntimeName } from '../manifest/types.ts'

/** A model that the service runs itself, as one more engine: the host is started by the first call. */
export function embeddedEngine(
  upstream: Engine,
  host: { readonly supervisor: EngineSupervisor; readonly runtime: RuntimeName; isPresent(): boolean },
): Engine {
  return {
    usable: host.isPresent,
    retain: upstream.retain,
    run(call) {
      let running: RunningCall | undefined
      let aborted = false
      return {
        ended: begin(),
        isWithEngine: () => running?.isWithEngine() ?? false,
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
          const error = new ApiError('upstream_error', 'The engine of this model does not start.', { cause })
          return { kind: 'failed', error, started: false }
        }
        if (aborted) return { kind: 'aborted' }
        running = upstream.run(call)
        return running.ended
      }
    },
    close: () => upstream.close(),
  }
}
