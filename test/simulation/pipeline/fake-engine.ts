import { ApiError } from '../../../src/shared/errors.ts'
import type { CallEnd, Engine, EngineCall, RunningCall } from '../../../src/engines/engine.ts'
import type { FakeReply } from './fake-reply.ts'
import type { CallSeen, RequestSeen } from './request-seen.ts'
import type { Happening, Stage } from './stage.ts'

/** The engine of one request. The plan decides what it says, the schedule whether and when. */
export function fakeEngine(stage: Stage, seen: RequestSeen, reply: FakeReply): Engine {
  seen.isEngineUsable = !stage.chance(0.03)
  return {
    usable() {
      if (!seen.isEngineUsable) stage.count('engine down')
      return seen.isEngineUsable
    },
    addresses: () => [],
    retain() {
      seen.retained += 1
      return () => (seen.letGo += 1)
    },
    run(call) {
      stage.demand(seen.note === 'noted', 'durable', seen, 'the engine is called before the intent is on record')
      stage.demand(!seen.isGone, 'end', seen, 'the engine is called for a caller that has left')
      stage.demand(!seen.isPreempted, 'engine', seen, 'the engine is called for a request that has to give way')
      stage.demand(seen.settling === 'none', 'end', seen, 'the engine is called after the row')
      stage.demand(seen.place === 'admitted', 'capacity', seen, 'the engine is called without capacity')
      stage.demand(!seen.isEngineBusy, 'capacity', seen, 'two engine calls at a time')
      stage.demand(seen.calls.length < seen.callsMax(), 'engine', seen, 'the engine is called once more than needed')
      stage.demand(seen.letGo < seen.retained, 'end', seen, 'the engine is called after it was let go')
      return new FakeCall(stage, seen, reply, call)
    },
    close: () => Promise.resolve(),
  }
}

const chunks = new Map<string, Buffer>()

function chunkOf(text: string): Buffer {
  let chunk = chunks.get(text)
  if (chunk === undefined) chunks.set(text, (chunk = Buffer.from(text, 'latin1')))
  return chunk
}

class FakeCall implements RunningCall, CallSeen {
  readonly ended: Promise<CallEnd>
  readonly bytes: number
  hasRequest = false
  isStarted = false
  isAborted = false
  isPaused = false
  end: CallEnd | undefined
  readonly #stage: Stage
  readonly #seen: RequestSeen
  readonly #reply: FakeReply
  readonly #receiver: EngineCall['receiver']
  #isHung = false
  #hasTriedTwice = false
  #symbolsLeft: string
  #chunksLeft: number
  readonly #resolve: (end: CallEnd) => void

  readonly learn = (): undefined => undefined

  constructor(stage: Stage, seen: RequestSeen, reply: FakeReply, call: EngineCall) {
    const { promise, resolve } = Promise.withResolvers<CallEnd>()
    this.ended = promise
    this.#resolve = resolve
    this.#stage = stage
    this.#seen = seen
    this.#reply = reply
    this.#receiver = call.receiver
    this.bytes = call.body.length
    this.#symbolsLeft = seen.plan.answer.kind === 'streamed' ? (seen.plan.answer.streams[seen.calls.length] ?? '') : ''
    this.#chunksLeft = 1 + stage.below(3)
    if (seen.calls.length > 0 && seen.plan.answer.kind === 'streamed') {
      stage.count('next stream')
      seen.hearNext()
    }
    seen.calls.push(this)
    stage.log(seen, 'is sent to the engine')
    stage.later(() => this.#happen())
  }

  isWithEngine(): boolean {
    return this.hasRequest
  }

  abort(): void {
    if (this.isAborted || this.end) return
    this.#stage.log(this.#seen, 'aborts the engine')
    this.isAborted = true
    if (this.#isHung) this.#stage.later(() => this.#happen())
    this.#isHung = false
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  #happen(): boolean {
    if (this.isAborted) return this.#wind()
    if (!this.hasRequest) return this.#send()
    if (!this.isStarted) return this.#answer()
    if (this.isPaused) return true
    return this.#say()
  }

  /** An aborted call takes a moment to end, and its last words may still be on their way. */
  #wind(): boolean {
    if (this.isStarted && !this.isPaused && this.#stage.chance(0.2) && this.#hasMore()) {
      this.#stage.count('engine spoke after the abort')
      this.#deliver()
      return this.end === undefined
    }
    return this.#finish({ kind: 'aborted' })
  }

  #send(): boolean {
    const { chance } = this.#stage
    if (chance(0.05)) return this.#fail('engine unreachable', false)
    if (chance(0.02)) return this.#hang()
    this.hasRequest = true
    return true
  }

  #answer(): boolean {
    const { chance } = this.#stage
    if (chance(0.1)) {
      this.hasRequest = false
      return this.#fail('engine refused', false)
    }
    // The request is sent to another address, which happens at most once.
    if (!this.#hasTriedTwice && chance(0.1)) {
      this.#stage.count('second try')
      this.#hasTriedTwice = true
      this.hasRequest = false
    } else if (chance(0.03)) return this.#fail('engine broke before its answer', false)
    else if (chance(0.02)) return this.#hang()
    else {
      this.isStarted = true
      this.#receiver.start({})
    }
    return true
  }

  #say(): boolean {
    const { chance } = this.#stage
    if (chance(0.05)) return this.#fail('engine broke off', true)
    if (chance(0.015)) return this.#hang()
    if (this.#hasMore()) {
      if (chance(0.03)) return this.#finish({ kind: 'ended' })
      this.#deliver()
      return this.end === undefined
    }
    return chance(0.1) ? this.#hang() : this.#finish({ kind: 'ended' })
  }

  #hasMore(): boolean {
    return this.#seen.plan.answer.kind === 'streamed' ? this.#symbolsLeft !== '' : this.#chunksLeft > 0
  }

  #deliver(): void {
    const isCallerBehind = this.#reply.isBlocked && !this.#seen.isGone && !this.isAborted
    this.#stage.demand(!isCallerBehind, 'engine', this.#seen, 'the engine goes on for a caller that is behind')
    const size = 1 + this.#stage.below(3)
    const text = this.#seen.plan.answer.kind === 'streamed' ? this.#symbolsLeft.slice(0, size) : 'answer'
    this.#symbolsLeft = this.#symbolsLeft.slice(size)
    this.#chunksLeft -= 1
    this.#stage.log(this.#seen, `engine says ${text}`)
    if (this.#seen.plan.answer.kind === 'streamed') this.#seen.hear(text)
    try {
      this.#receiver.data(chunkOf(text))
    } catch {
      this.#fail('engine sent something else', true)
    }
    const isFlooding = this.#reply.isBlocked && !this.isPaused && !this.#seen.isGone && this.end === undefined
    this.#stage.demand(!isFlooding, 'engine', this.#seen, 'the engine is not paused for a caller that reads slowly')
  }

  #hang(): false {
    this.#stage.log(this.#seen, 'engine hangs')
    this.#stage.count('engine hung')
    this.#isHung = true
    return false
  }

  #fail(reason: Happening, started: boolean): false {
    this.#stage.count(reason)
    return this.#finish({ kind: 'failed', error: new ApiError('upstream_error', reason), started })
  }

  #finish(end: CallEnd): false {
    this.end = end
    this.#stage.log(this.#seen, `engine call ${end.kind}`)
    this.#resolve(end)
    return false
  }
}
