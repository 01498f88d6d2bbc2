import { ApiError } from '../shared/errors.ts'
import type { Workspace } from './workspace.ts'
import type { Accounts } from './accounts.ts'

export interface WorkspaceListQuery {
  /** Only workspaces whose name contains this text, ignoring case. */
  readonly search: string | undefined
  /** The id of the last workspace of the page before. */
  readonly before: string | undefined
  readonly limit: number
}

/** A page of workspaces, the newest first. */
export function workspaceList(
  accounts: Pick<Accounts, 'workspaces'>,
  { search = '', before, limit }: WorkspaceListQuery,
): { readonly workspaces: readonly Workspace[]; readonly next: string | null } {
  const all = accounts.workspaces()
  const end = before === undefined ? all.length : all.findIndex(({ id }) => id === before)
  if (end < 0) {
    throw new ApiError('invalid_value', "'before' must be the 'next' value of the previous page.", { param: 'before' })
  }
  const part = search.toLowerCase()
  const found: Workspace[] = []
  for (let index = end - 1; index >= 0 && found.length <= limit; index--) {
    const workspace = all[index]
    if (workspace?.name.toLowerCase().includes(part)) found.push(workspace)
  }
  const workspaces = found.slice(0, limit)
  return { workspaces, next: found.length > limit ? (workspaces.at(-1)?.id ?? null) : null }
}
