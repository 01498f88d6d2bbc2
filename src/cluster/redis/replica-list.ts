import { REPLICAS_KEYS, type RedisLink } from './link.ts'
import { luaBeside, script } from './script.ts'

const listedScript = script(luaBeside(import.meta.url, 'listed'))
const drainScript = script(luaBeside(import.meta.url, 'drain'))

/** All replicas, as they reported with their last heartbeat. */
export function replicaList(link: RedisLink) {
  link.follow({
    scripts: [listedScript, drainScript],
    channels: [],
    joined() {},
    lost() {},
    heartbeat() {},
    receive() {},
  })

  return {
    async list(): Promise<readonly { readonly name: string; readonly about: unknown }[]> {
      const found = (await link.run(listedScript, REPLICAS_KEYS, [])) as string[]
      return found.flatMap((name, index) =>
        index % 2 === 0 ? [{ name, about: JSON.parse(found[index + 1]!) as unknown }] : [],
      )
    },
    /** False if there is no such replica. */
    drain: async (name: string): Promise<boolean> => (await link.run(drainScript, REPLICAS_KEYS, [name])) === 1,
  }
}
