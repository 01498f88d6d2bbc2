import type { Job, StreamRelay } from './job.ts'
import { noUsage, type Usage } from './money/rating.ts'

/** Of an engine that reports none. */
export function estimatedUsage(job: Job, outputTokens: number): Usage {
  return { ...noUsage, inputTokens: job.likelyInputTokens, outputTokens }
}

/** Every delta since the engine's last count is a token at least. */
export function streamedUsage(job: Job, relay: StreamRelay): { usage: Usage; isEstimated: boolean } {
  const reported = relay.reportedUsage()
  if (!reported) return { usage: estimatedUsage(job, relay.deltaCount()), isEstimated: true }
  const more = relay.deltasSinceReport()
  return { usage: { ...reported, outputTokens: reported.outputTokens + more }, isEstimated: more > 0 }
}
