import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { embeddedEngine } from '../../src/local-models/embedded-engine.ts'
import type { EngineSupervisor } from '../../src/local-models/supervisor.ts'
import type { CallEnd, Engine, EngineCall, RunningCall } from '../../src/engines/engine.ts'
import { within } from '../support/waiting.ts'

const endOf = ({ ended }: RunningCall): Promise<CallEnd> => within(10_000, 'the call ends', ended)

const missing = { slug: 'meta/x', bytes: 1000, isArriving: false, isPaused: false }

/** A model whose host starts when the test says so, and whose calls end when they are aborted. */
function stage() {
  const started = Promise.withResolvers<string>()
  const calls: { aborted: boolean }[] = []
  const done: string[] = []
  const upstream = {
    run(): RunningCall {
      const call = { aborted: false }
      calls.push(call)
      const end = Promise.withResolvers<CallEnd>()
      return {
        ended: end.promise,
        isWithEngine: () => true,
        learn: (tokens) => void done.push(`learn ${tokens}`),
        abort() {
          call.aborted = true
          end.resolve({ kind: 'aborted' })
        },
        pause: () => void done.push('pause'),
        resume: () => void done.push('resume'),
      }
    },
    addresses: () => [{ url: 'http://unix', isUp: false, inFlight: 3 }],
    close: async () => void done.push('close'),
  } as unknown as Engine
  const socket = (runtime: string) => (done.push(runtime), started.promise)
  const supervisor = { socket } as unknown as EngineSupervisor
  const host = { isHere: true }
  const engine = embeddedEngine(upstream, {
    supervisor,
    runtime: 'onnx',
    missingFiles: () => (host.isHere ? undefined : missing),
  })
  return { engine, started, calls, done, host, run: () => engine.run({} as EngineCall) }
}

describe('a call of a model that the service runs itself', () => {
  it('never reaches the host if its caller disconnects while the host starts', async () => {
    const { started, calls, run } = stage()
    const running = run()
    assert.equal(running.isWithEngine(), false)
    running.abort()
    started.resolve('')
    assert.deepEqual(await endOf(running), { kind: 'aborted' })
    assert.equal(calls.length, 0)
  })

  it('is aborted at the host if its caller disconnects later', async () => {
    const { started, calls, run } = stage()
    const running = run()
    started.resolve('')
    await started.promise
    assert.equal(running.isWithEngine(), true)
    running.abort()
    assert.deepEqual(await endOf(running), { kind: 'aborted' })
    assert.deepEqual(calls, [{ aborted: true }])
  })

  it('fails with a retryable error if the host does not start', async () => {
    const { started, calls, run } = stage()
    const running = run()
    started.reject(new Error('it keeps crashing'))
    const end = await endOf(running)
    assert.ok(end.kind === 'failed' && !end.started)
    assert.equal(end.error.code, 'upstream_error')
    assert.doesNotMatch(end.error.message, /crashing/, 'the reason is for the log')
    assert.equal(calls.length, 0)
  })

  it('is possible as long as the files of the model exist', () => {
    const { engine, host } = stage()
    assert.equal(engine.usable(), true)
    host.isHere = false
    assert.equal(engine.usable(), false)
    assert.equal(engine.missingFiles?.(), missing)
  })

  it('is controlled at the host once it is there, and not before', async () => {
    const { engine, started, done, run } = stage()
    const running = run()
    const control = (): void => {
      running.learn(1)
      running.pause()
      running.resume()
    }
    control()
    started.resolve('')
    await started.promise
    control()
    await engine.close()
    assert.deepEqual(done, ['onnx', 'learn 1', 'pause', 'resume', 'close'])
  })

  it('goes to an address that is up, as long as there are files for it', () => {
    const { engine, host } = stage()
    assert.deepEqual(engine.addresses(), [{ url: 'embedded', isUp: true, inFlight: 3 }])
    host.isHere = false
    assert.deepEqual(engine.addresses(), [])
  })
})
