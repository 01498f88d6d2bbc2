import type { CacheSizeQuery, EngineDescription, EngineKind } from '../../catalog/model.ts'

/**
 * How to ask a server how many tokens its cache holds; undefined if it is not needed, or this kind does not report it.
 */
export function cacheSizeQuestion({ kind, balance, cacheTokens }: EngineDescription): CacheSizeQuery | undefined {
  return balance === 'prefix' && cacheTokens === undefined ? questions[kind] : undefined
}

/** These servers answer it at no cost. */
const questions: Readonly<Partial<Record<EngineKind, CacheSizeQuery>>> = {
  vllm: { path: '//metrics', read: blocksOfVllm },
  sglang: { path: '//get_server_info', read: (answer) => count(parsed(answer), ['max_total_num_tokens']) },
  llamacpp: { path: '//props', read: slotsOfLlamacpp },
}

const CACHE_CONFIG = /^vllm:cache_config_info\{(.*)\}/gm
const BLOCKS = /(?:^|,)num_gpu_blocks="(\d{1,12})"/
const BLOCK_SIZE = /(?:^|,)block_size="(\d{1,12})"/

/** With data parallelism, each engine of a server has a line of its own. Early versions write "None" for blocks. */
function blocksOfVllm(metrics: string): number | undefined {
  let tokens = 0
  for (const [, labels = ''] of metrics.matchAll(CACHE_CONFIG)) {
    tokens += Number(BLOCKS.exec(labels)?.[1]) * Number(BLOCK_SIZE.exec(labels)?.[1])
  }
  return tokens > 0 ? tokens : undefined
}

/** The context is that of one slot. */
function slotsOfLlamacpp(answer: string): number | undefined {
  const properties = parsed(answer)
  const context = count(properties, ['default_generation_settings', 'n_ctx'])
  const slots = count(properties, ['total_slots']) ?? 1
  return context === undefined ? undefined : context * slots
}

function parsed(answer: string): unknown {
  try {
    return JSON.parse(answer)
  } catch {
    return undefined
  }
}

/** A whole number above zero at this place. */
function count(value: unknown, path: readonly string[]): number | undefined {
  const found = path.reduce<unknown>(
    (inside, name) => (typeof inside === 'object' && inside !== null ? Reflect.get(inside, name) : undefined),
    value,
  )
  return Number.isSafeInteger(found) && (found as number) > 0 ? (found as number) : undefined
}
