import type { Deployment, Model } from '../../../src/catalog/model.ts'
import type { EngineRequest, Job, PassThrough, ParsedAnswer, StreamRelay } from '../../../src/engines/job.ts'
import { noUsage, type Usage } from '../../../src/billing/rating/rating.ts'
import {
  bodyBytes,
  cachedTokens,
  CONTEXT_LENGTH,
  heldInputTokensOf,
  inputTokens,
  likelyInputTokens,
  maxInputTokensOf,
  type StreamPlan,
  type WholePlan,
} from './plan.ts'
import { costOf } from './fake-admission.ts'
import type { Stage } from './stage.ts'
import type { RequestSeen } from './request-seen.ts'

const model = { id: 'sim/model', contextLength: CONTEXT_LENGTH } as Model
const body = Buffer.alloc(bodyBytes)

/** The job of a simulated request. Each has its own deployment in the one lane, so that its engine is its own. */
export function jobOf(stage: Stage, seen: RequestSeen, deployment: Deployment): Job {
  const { answer, audioMs, cost, maxTokens } = seen.plan
  return {
    tier: seen.plan.tier,
    endpoint: '/simulated',
    model,
    deployment,
    cost: costOf(cost, seen.index),
    maxTokens,
    maxInputTokens: maxInputTokensOf(seen.plan),
    heldInputTokens: heldInputTokensOf(seen.plan),
    likelyInputTokens,
    media: { audioMs, images: answer.kind === 'whole' ? (answer.usage?.images ?? 0) : 0 },
    calls:
      answer.kind === 'streamed'
        ? answer.streams.map((_, number) => callOf(false, number > 0 && answer.repeatsInput))
        : Array.from({ length: answer.calls }, (_, number) => callOf(number === 0 && answer.hasFallback)),
    answer:
      answer.kind === 'streamed'
        ? { kind: 'streamed', relay: () => relays(answer, seen.plan.maxTokensPerCall) }
        : {
            kind: 'whole',
            passThrough: answer.passThrough === 'none' ? undefined : () => passThroughOf(stage, seen, answer),
            read: (bodies) => read(stage, seen, answer, bodies.length),
          },
  }
}

function callOf(hasFallback: boolean, repeatsInput = false): EngineRequest {
  const call: EngineRequest = { path: '/', contentType: 'application/json', body, repeatsInput }
  return hasFallback ? { ...call, fallback: () => call } : call
}

async function read(
  stage: Stage,
  seen: RequestSeen,
  plan: WholePlan,
  bodies: number,
): Promise<ParsedAnswer | undefined> {
  stage.demand(seen.read === 'none', 'outcome', seen, 'an answer is read twice')
  stage.demand(bodies === plan.calls, 'outcome', seen, `${bodies} of ${plan.calls} answers are read`)
  if (!plan.isReadSlow) return readNow(stage, seen, plan)
  seen.read = 'pending'
  return new Promise((resolve, reject) => {
    stage.later(() => {
      try {
        resolve(readNow(stage, seen, plan))
      } catch (error) {
        reject(error)
      }
      return false
    })
  })
}

function readNow(stage: Stage, seen: RequestSeen, plan: WholePlan): ParsedAnswer | undefined {
  stage.count(`answer ${plan.read}`)
  seen.read = plan.read
  stage.log(seen, `answer ${plan.read}`)
  if (plan.read === 'failed') throw new Error('the answer could not be stored')
  return plan.read === 'useless'
    ? undefined
    : { usage: plan.usage, isPastLimit: plan.isCut, outputBytes: () => plan.outputBytes, render: usageText }
}

function passThroughOf(stage: Stage, seen: RequestSeen, plan: WholePlan): PassThrough {
  let pieces = 0
  return {
    push(chunk) {
      pieces += 1
      if (plan.passThrough === 'fails' && pieces > 1) throw new RangeError('this is something else')
      return plan.passThrough === 'declines' ? undefined : chunk
    },
    end() {
      // Only an answer that is stored first can fail here.
      return readNow(stage, seen, plan.read === 'failed' ? { ...plan, read: 'useless' } : plan)
    },
  }
}

/** The streams of all calls, one after the other. */
function relays({ streams, repeatsInput }: StreamPlan, maxTokens: number): StreamRelay {
  const opened = [relay(maxTokens)]
  const current = () => opened.at(-1)!
  const total = (count: (it: StreamRelay) => number): number => opened.reduce((sum, it) => sum + count(it), 0)
  return {
    push: (chunk) => current().push(chunk),
    isDone: () => current().isDone(),
    isBroken: () => current().isBroken(),
    wrongEvent: () => undefined,
    isComplete: () => opened.length === streams.length && opened.every((it) => it.isComplete()),
    isPastLimit: () => opened.some((it) => it.isPastLimit()),
    reportedUsage() {
      const reported = opened.flatMap((it) => it.reportedUsage() ?? [])
      const [first] = reported
      if (!first) return undefined
      const inputs = repeatsInput ? 1 : reported.length
      return {
        ...noUsage,
        inputTokens: inputTokens * inputs,
        cachedInputTokens: cachedTokens * inputs,
        outputTokens: reported.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
      }
    },
    deltaCount: () => total((it) => it.deltaCount()),
    deltasSinceReport: () => total((it) => it.deltasSinceReport()),
    closing: usageText,
    failure: (error) => current().failure(error),
    next() {
      if (!current().isComplete() || opened.length === streams.length) return false
      opened.push(relay(maxTokens))
      return true
    },
  }
}

/** Understands the symbols of a stream plan. Unlike a real one it goes on after the end, if it is asked to. */
function relay(maxTokens: number): StreamRelay {
  let tokens = 0
  let reported: Usage | undefined
  let isFinished = false
  let isDone = false
  let isBroken = false
  let isPastLimit = false
  return {
    push(chunk) {
      let text = ''
      for (const symbol of chunk.toString('latin1')) {
        if (symbol === 't' && tokens === maxTokens) {
          isPastLimit = true
          isFinished = true
          isDone = true
          return `${text}f`
        }
        if (symbol === 't') tokens += 1
        if (symbol === 'u')
          reported = { ...noUsage, inputTokens, cachedInputTokens: cachedTokens, outputTokens: tokens }
        if (symbol === 'f') isFinished = true
        if (symbol === 'd') isDone = true
        if (symbol === 'x') isBroken = true
        if (symbol === 'd' || symbol === 'x') break
        if (symbol !== 'u') text += symbol
      }
      return text
    },
    isDone: () => isDone,
    isBroken: () => isBroken,
    wrongEvent: () => undefined,
    isComplete: () => isFinished && !isBroken,
    isPastLimit: () => isPastLimit,
    reportedUsage: () => reported,
    deltaCount: () => tokens,
    deltasSinceReport: () => tokens - (reported?.outputTokens ?? 0),
    closing: usageText,
    failure: (error) => `data: ${JSON.stringify(error.body())}\n\n`,
    next: () => false,
  }
}

/** How an answer shows its usage in these schedules. */
export function usageText(usage: Pick<Usage, 'inputTokens' | 'outputTokens' | 'images'>): string {
  return `usage ${usage.inputTokens} ${usage.outputTokens} ${usage.images}`
}
