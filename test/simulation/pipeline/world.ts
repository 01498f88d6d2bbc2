import type { LaneLimits } from '../../../src/queue/lane.ts'
import type { Deployment } from '../../../src/catalog/model.ts'
import { seededRandom } from '../../../src/shared/seeded-random.ts'
import type { createPipeline } from '../../../src/inference/pipeline/pipeline.ts'
import type { Workspace } from '../../../src/workspaces/workspace.ts'
import type { Engine } from '../../../src/engines/engine.ts'
import { costOf, fakeAdmission } from './fake-admission.ts'
import { fakeLedger, fakeSpending } from './fake-books.ts'
import { fakeEngine } from './fake-engine.ts'
import { FakeReply } from './fake-reply.ts'
import { FakeTime } from './fake-time.ts'
import { jobOf } from './job.ts'
import { choicesFrom, planRequest } from './plan.ts'
import { PipelineViolation, RequestSeen } from './request-seen.ts'
import { happenings, type Happening, type Stage } from './stage.ts'
import { ratesOf, witnessOn } from './witness.ts'

export type CreatePipeline = typeof createPipeline

export interface PipelineTally {
  requests: number
  steps: number
  readonly happenings: Record<Happening, number>
}

const lane = 'lane'
/** More than any chain of promises is long, also when one request gives its place to the next, and that one to another. */
const microtasksMax = 32
const stepsMax = 2000

/**
 * Runs the real pipeline on fake ports, a few requests at a time, through schedules of faults in any order. The same
 * seed gives the same run. A violation names its schedule and comes with the diary of what happened in it.
 */
export async function simulatePipeline(
  create: CreatePipeline,
  seed: number,
  schedules: number,
): Promise<PipelineTally> {
  const tally = emptyTally()
  const { stackTraceLimit } = Error
  // Thousands of errors are made here on purpose, and their stacks would cost more than everything else.
  Error.stackTraceLimit = 0
  try {
    for (let number = 0; number < schedules; number += 1) {
      const scheduleSeed = seed + Math.imul(number, 0x9e3779b1)
      const violation = await liveSchedule(create, scheduleSeed, tally)
      if (violation === undefined) continue
      const diary: string[] = []
      await liveSchedule(create, scheduleSeed, emptyTally(), diary)
      violation.message += ` (seed ${seed}, schedule ${number})\n${diary.join('\n')}`
      throw violation
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  return tally
}

function emptyTally(): PipelineTally {
  const counts = Object.fromEntries(happenings.map((happening) => [happening, 0])) as Record<Happening, number>
  return { requests: 0, steps: 0, happenings: counts }
}

/** One schedule, from the first arrival until nothing is left to happen. */
async function liveSchedule(
  create: CreatePipeline,
  seed: number,
  tally: PipelineTally,
  diary?: string[],
): Promise<PipelineViolation | undefined> {
  const world = openWorld(create, seed, tally, diary)
  for (let step = 0; !world.isOver(); step += 1) {
    if (step === stepsMax) return new PipelineViolation('outcome', 'something never ends')
    const microtasks = world.step()
    await passMicrotasks(microtasks)
    if (microtasks === microtasksMax) world.inspect()
    if (world.violation()) return world.violation()
  }
  await passMicrotasks(microtasksMax)
  world.inspect()
  await world.inspectEnd()
  return world.violation()
}

const microtask = Promise.resolve()

async function passMicrotasks(count: number): Promise<void> {
  for (let passed = 0; passed < count; passed += 1) await microtask
}

function openWorld(create: CreatePipeline, seed: number, tally: PipelineTally, diary: string[] | undefined) {
  const choices = choicesFrom(seededRandom(seed))
  const { below, chance, oneOf } = choices
  const time = new FakeTime()
  const events: (() => boolean)[] = []
  const requests: RequestSeen[] = []
  const replies: FakeReply[] = []
  const engines = new Map<Deployment, Engine>()
  let violation: PipelineViolation | undefined
  let priceVersion = 1
  let isClosing = false

  const stage: Stage = {
    ...choices,
    requests,
    later: (event) => void events.push(event),
    log: (seen, what) => void diary?.push(`${time.nowMs} ${seen?.index ?? 'all'}: ${what}`),
    count: (happening) => void (tally.happenings[happening] += 1),
    demand(holds, rule, seen, message) {
      if (holds) return
      stage.log(seen, `BREAKS the rule '${rule}': ${message}`)
      violation ??= new PipelineViolation(rule, `${message}; request ${seen.index}`)
    },
  }
  const witness = witnessOn(stage)
  const { lanes, admission } = fakeAdmission(stage, time.clockOf('admission'))
  const pipeline = create({
    admission,
    ledger: fakeLedger(stage, witness.settles),
    spending: fakeSpending(stage),
    clock: time.clockOf('pipeline'),
    engineOf: (deployment) => engines.get(deployment),
    priceOf(_deployment, _model, workspaceId) {
      requests[Number(workspaceId)]?.priceVersions.push(priceVersion)
      return { version: priceVersion, rates: ratesOf(priceVersion) }
    },
    admitted() {},
    settled: ({ requestId }) => void (requests[Number(requestId)]!.reported += 1),
    contradicted() {},
    cacheUsed() {},
    pastLimit: ({ requestId }) => void (requests[Number(requestId)]!.pastLimitReported += 1),
    random: () => 0,
  })

  const leaves = oneOf([0, 0.01, 0.06])
  const changes = oneOf([0, 0.02, 0.05])
  const hurries = oneOf([0, 0.05, 0.3])
  setLimits()
  for (let count = 1 + below(5); count > 0; count -= 1) {
    const seen = new RequestSeen(requests.length, planRequest(choices))
    requests.push(seen)
    replies.push(new FakeReply(stage, seen))
    stage.later(() => arrive(seen))
  }

  function arrive(seen: RequestSeen): false {
    tally.requests += 1
    stage.log(seen, 'arrives')
    const reply = replies[seen.index]!
    const deployment = { lane, limits: { maxWaitMs: 0, tokenBudget: 0, maxFlexWaitMs: 200 } } as Deployment
    engines.set(deployment, fakeEngine(stage, seen, reply))
    const caller = { workspace: { id: String(seen.index) } as Workspace, keyId: 'key' }
    pipeline(jobOf(stage, seen, deployment), caller, reply).then(
      (row) => witness.fulfilled(seen, row),
      (error: unknown) => witness.rejected(seen, error),
    )
    return false
  }

  function setLimits(): void {
    const limits: LaneLimits = {
      tokenBudget: costOf(oneOf([7, 16, 32, 100]), 0),
      maxConcurrentRequests: oneOf([0, 1, 1, 2, 2, 8]),
      maxQueueDepth: oneOf([0, 1, 8, 8]),
      maxWaitMs: oneOf([0, 30, 200, 200, 200]),
      maxRequestsPerWorkspace: oneOf([undefined, undefined, 1, 2]),
      batch: { reserveConcurrent: oneOf([0, 0, 1]), reserveTokens: 0, preempt: chance(0.9) },
    }
    lanes.setLanes(chance(0.05) ? new Map() : new Map([[lane, limits]]))
  }

  const present = (): RequestSeen[] => requests.filter(({ isGone, result }) => !isGone && result === 'pending')
  const leave = (seen: RequestSeen): void => replies[seen.index]?.leave()

  /** Changes something from outside, now and then. */
  function disturb(): boolean {
    const dice = oneOf(['leave', 'limits', 'price', 'time', 'shutdown', 'cut'] as const)
    if (dice === 'leave' && chance(leaves * 6)) {
      const callers = present()
      if (callers.length === 0) return false
      leave(oneOf(callers))
    } else if (dice === 'limits' && chance(changes * 6)) {
      stage.log(undefined, 'limits change')
      stage.count('limits changed')
      setLimits()
    } else if (dice === 'price' && chance(changes * 6)) {
      priceVersion += 1
      stage.count('price changed')
    } else if (dice === 'time' && chance(0.2)) {
      time.pass(oneOf([1, 5, 25, 100, 1000]))
    } else if (dice === 'shutdown' && !isClosing && chance(changes * 2)) {
      stage.log(undefined, 'shuts down')
      stage.count('shut down')
      isClosing = true
      lanes.close()
    } else if (dice === 'cut' && isClosing && chance(0.5)) {
      cutOff()
    } else return false
    return true
  }

  /** All at once, as a service that has no time left does. Each connection closes a little later. */
  function cutOff(): void {
    for (const seen of present()) {
      seen.isCut = true
      stage.later(() => {
        if (present().includes(seen)) leave(seen)
        return false
      })
    }
  }

  /** Lets one thing happen. Returns how many microtasks pass before the next: mostly enough to react, but not always. */
  function step(): number {
    tally.steps += 1
    const microtasks = chance(hurries) ? below(6) : microtasksMax
    if (disturb()) return microtasks
    const at = below(events.length)
    const event = events[at]
    if (event === undefined) wait()
    else if (!event()) {
      events[at] = events.at(-1)!
      events.pop()
    }
    return microtasks
  }

  /** Nothing is about to happen: time passes, and callers lose patience with an engine that hangs. */
  function wait(): void {
    time.pass(1000)
    const callers = present()
    if (events.length === 0 && callers.length > 0 && chance(0.5)) leave(oneOf(callers))
  }

  function isOver(): boolean {
    return events.length === 0 && requests.every(({ result, isEngineBusy }) => result !== 'pending' && !isEngineBusy)
  }

  function inspect(): void {
    for (const seen of requests) witness.inspect(seen, replies[seen.index]!.goneListeners)
  }

  /** Holds when nothing is left to happen. */
  async function inspectEnd(): Promise<void> {
    const [first] = requests
    if (!first) return
    stage.demand(time.pendingAlarms('pipeline') === 0, 'end', first, 'a timer is left')
    for (const { inFlightRequests, committedTokens, queueDepth, batch } of (await lanes.status()).values()) {
      const figures = [inFlightRequests, committedTokens, queueDepth, ...Object.values(batch)]
      const isEmpty = figures.every((figure) => figure === 0)
      stage.demand(isEmpty, 'capacity', first, 'no request is left, but the lane is not empty')
    }
  }

  return { step, isOver, inspect, inspectEnd, violation: () => violation }
}
