import type { EngineDescription, EngineKind, LoadQuery, ReportedLoad } from '../../catalog/model.ts'

/** How to ask a server for its load; undefined if this kind does not report it. llama.cpp does only with `--metrics`. */
export function loadQuestion({ kind }: EngineDescription): LoadQuery | undefined {
  const gauges = gaugesOf[kind]
  return gauges && { path: '//metrics', read: (metrics) => loadIn(metrics, gauges) }
}

/** The names of gauges in the servers' metrics. Where there are several, the first is that of newer versions. */
interface Gauges {
  readonly running: string
  readonly waiting: string
  readonly cacheUse: readonly string[]
}

const gaugesOf: Readonly<Partial<Record<EngineKind, Gauges>>> = {
  vllm: {
    running: 'vllm:num_requests_running',
    waiting: 'vllm:num_requests_waiting',
    cacheUse: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
  },
  sglang: {
    running: 'sglang:num_running_reqs',
    waiting: 'sglang:num_queue_reqs',
    cacheUse: ['sglang:token_usage'],
  },
  llamacpp: {
    running: 'llamacpp:requests_processing',
    waiting: 'llamacpp:requests_deferred',
    cacheUse: ['llamacpp:kv_cache_usage_ratio'],
  },
}

/** With data parallelism, each engine of a server has samples of its own: requests are summed, and the fullest cache counts. */
function loadIn(metrics: string, { running, waiting, cacheUse }: Gauges): ReportedLoad | undefined {
  const lines = metrics.split('\n')
  const requests = samplesOf(lines, running)
  if (requests.length === 0) return undefined
  const used = cacheUse.map((name) => samplesOf(lines, name)).find((samples) => samples.length > 0)
  return {
    running: sum(requests),
    waiting: sum(samplesOf(lines, waiting)),
    cacheUse: used && Math.max(...used),
  }
}

/** The values of a gauge, whatever its labels. */
function samplesOf(lines: readonly string[], name: string): readonly number[] {
  return lines
    .filter((line) => line.startsWith(name) && (line[name.length] === '{' || line[name.length] === ' '))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)))
    .filter((value) => Number.isFinite(value) && value >= 0)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
