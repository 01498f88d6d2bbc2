import type { SharedValues } from '../ports/shared-values.ts'
import type { RedisLink } from './link.ts'
import { script } from './script.ts'

const putScript = script("return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])")
const getScript = script("return redis.call('GET', KEYS[1])")
const takeScript = script("return redis.call('GETDEL', KEYS[1])")

export function redisValues(link: RedisLink): SharedValues {
  const scripts = [putScript, getScript, takeScript]
  link.follow({ scripts, channels: [], joined() {}, lost() {}, beat() {}, hear() {} })
  const run = async (which: typeof getScript, key: string, ...values: (string | number)[]) => {
    if (!link.membership()) throw new Error('Redis does not answer')
    return ((await link.run(which, [`weir:value:${key}`], values)) as string | null) ?? undefined
  }
  return {
    put: async (key, value, ms) => void (await run(putScript, key, value, Math.max(1, Math.ceil(ms)))),
    get: (key) => run(getScript, key),
    take: (key) => run(takeScript, key),
    remove: async (key) => void (await run(takeScript, key)),
  }
}
