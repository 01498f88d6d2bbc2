import { cacheView } from '../views.ts'
import type { CacheUseEntry } from '../../../engines/cache-use.ts'
import { cacheUseOf } from '../../../operate/running-service.ts'
import { CommandFailed, withStore, type Flags } from '../../../cli/command.ts'
import { count, counted } from '../../../shared/counts.ts'
import { renderTable, type Column } from '../../../cli/terminal/table.ts'
import type { View } from '../../../cli/terminal/view.ts'

/** `weir usage cache`: how much of the input of each key was cached, and what to do about the rest. */

interface CacheRow {
  readonly workspace: string
  readonly entry: CacheUseEntry
}

export async function showCacheUse(flags: Flags): Promise<void> {
  flags.refuseMore(1)
  await withStore(flags, { changes: false }, async ({ config: { dataDir }, accounts }) => {
    const named = flags.text('workspace')
    const workspaceId = named === undefined ? undefined : accounts.workspace(named).id
    const entries = await cacheUseOf(dataDir)
    if (!entries) {
      throw new CommandFailed(`no service is running on ${dataDir}; what was cached is known only while one runs`)
    }
    const rows = entries
      .filter((it) => workspaceId === undefined || it.workspaceId === workspaceId)
      .map((entry) => ({ workspace: accounts.workspace(entry.workspaceId).name, entry }))
    const data = rows.map(({ workspace, entry }) => ({ workspace, ...cacheView(entry) }))
    flags.print({ object: 'list', data }, (view) => cacheText(rows, view))
  })
}

export function cacheText(rows: readonly CacheRow[], view: View): string {
  const columns: readonly Column<CacheRow>[] = [
    { title: 'WORKSPACE', cell: ({ workspace }) => workspace, mayShrink: true },
    { title: 'KEY', cell: ({ entry }) => entry.keyId },
    { title: 'MODEL', cell: ({ entry }) => entry.model, mayShrink: true },
    { title: 'REQUESTS', cell: ({ entry }) => count(entry.requests), align: 'right' },
    {
      title: 'CACHED',
      cell: ({ entry }) => `${Math.round((entry.cachedInputTokens / entry.inputTokens) * 100)} %`,
      align: 'right',
    },
  ]
  return renderTable(rows, columns, view, ({ entry }) => causesText(entry))
}

/** The causes of misses, the most frequent first, and where to look. undefined if there were none. */
function causesText({ misses, latestChange }: CacheUseEntry): string | undefined {
  const { first_use: first, prefix_changed: changed, evicted, moved } = misses
  const causes = [
    { times: changed, text: `${counted(changed, 'prompt')} changed near the beginning${placeOf(latestChange)}` },
    { times: evicted, text: `${count(evicted)} no longer in the cache` },
    { times: moved, text: `${count(moved)} cached at another address, which was down or far busier` },
    { times: first, text: `${count(first)} new` },
  ]
  const found = causes.filter(({ times }) => times > 0).toSorted((one, other) => other.times - one.times)
  return found.length === 0 ? undefined : `not cached: ${found.map((it) => it.text).join('; ')}`
}

function placeOf(change: CacheUseEntry['latestChange']): string {
  if (!change) return ''
  const where = change.message < 0 ? 'the tools' : `message ${change.message}`
  return `, last in ${where} after character ${count(change.afterCharacter)}`
}
