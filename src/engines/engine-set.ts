import type { Deployment, EngineDescription } from '../catalog/model.ts'
import type { Engine, EngineAddressState } from './engine.ts'

/** The engines of all deployments. */
export interface EngineSet {
  of(deployment: Deployment): Engine | undefined
  /** The addresses of all engines, by lane. */
  addresses(): Iterable<readonly [lane: string, address: EngineAddressState]>
  /** Applies a new catalog. An engine whose description did not change stays open. */
  update(deployments: readonly Deployment[]): void
  close(): Promise<void>
}

export function engineSet(open: (description: EngineDescription) => Engine): EngineSet {
  let current = new Map<string, { readonly description: string; readonly engine: Engine }>()
  return {
    of: (deployment) => current.get(deployment.lane)?.engine,
    *addresses() {
      for (const [lane, { engine }] of current) for (const address of engine.addresses()) yield [lane, address]
    },
    update(deployments) {
      const next: typeof current = new Map()
      for (const { lane, engine: description } of deployments) {
        if (!description) continue
        const text = JSON.stringify(description)
        const same = current.get(lane)
        const keep = same?.description === text ? same : undefined
        next.set(lane, keep ?? { description: text, engine: open(description) })
      }
      for (const [lane, old] of current) if (next.get(lane) !== old) void old.engine.close()
      current = next
    },
    async close() {
      await Promise.all([...current.values()].map(({ engine }) => engine.close()))
    },
  }
}
