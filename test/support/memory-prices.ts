import type { AccountStore, NewPriceVersion } from '../../src/workspaces/account-store.ts'
import type { PriceVersion } from '../../src/workspaces/workspace.ts'

/** A store that has only prices. As in a database, a version is added only behind the one that it follows. */
export function memoryPrices() {
  const versions: PriceVersion[] = []
  let afterEach: (() => Promise<unknown>) | undefined
  const store = {
    priceVersions: async () => [...versions],
    async addPriceVersions(added: readonly NewPriceVersion[]) {
      const ids: (number | undefined)[] = []
      for (const { latest, ...version } of added) {
        const isSame = (it: PriceVersion): boolean =>
          it.model === version.model && it.workspaceId === version.workspaceId
        const isLatest = (versions.findLast(isSame)?.id ?? 0) === latest
        ids.push(isLatest ? versions.push({ ...version, id: versions.length + 1 }) : undefined)
        await afterEach?.()
      }
      return ids
    },
  } as unknown as AccountStore
  /** What to do after each version that is written, when the others are not there yet. */
  const onVersion = (react: typeof afterEach): void => void (afterEach = react)
  return { store, versions, onVersion }
}
