import type { Job, StreamRelay } from './job.ts'
import { noUsage, type Usage } from './money/rating.ts'

/** Used when the engine reports no usage. */
export function estimatedUsage(job: Job, outputTokens: number): Usage {
  return { ...noUsage, inputTokens: job.likelyInputTokens, outputTokens }
}

/** The engine's last count, plus one token, the least possible, for every delta since then. */
export function streamedUsage(job: Job, relay: StreamRelay): { usage: Usage; isEstimated: boolean } {
  const reported = relay.reportedUsage()
  if (!reported) return { usage: estimatedUsage(job, relay.deltaCount()), isEstimated: true }
  const more = relay.deltasSinceReport()
  return { usage: { ...reported, outputTokens: reported.outputTokens + more }, isEstimated: more > 0 }
}
