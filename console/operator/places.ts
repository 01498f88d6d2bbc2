import { aiModelIcon, keyIcon, organizationIcon } from '../shared/icons.ts'
import type { PlaceFinder } from '../shared/palette.tsx'
import { api } from './api.ts'
import { lanePath, workspacePath } from './paths.ts'
import { may } from './session.tsx'

/** What the palette finds besides pages: the newest keys, and all models and workspaces. */
export const placeFinder: PlaceFinder = {
  async known(signal) {
    const nothing = { data: [] }
    const [engines, keys] = await Promise.all([
      may('listEngines') ? api('listEngines', { signal }) : nothing,
      may('listKeys') ? api('listKeys', { query: { limit: 200 }, signal }) : nothing,
    ])
    return [
      ...engines.data.map(({ lane }) => ({
        kind: 'Model' as const,
        title: lane,
        icon: aiModelIcon,
        href: lanePath(lane),
      })),
      ...keys.data.map(({ id, name, redacted, workspace }) => ({
        kind: 'Key' as const,
        title: name ?? redacted,
        note: `${workspace} ${name === null ? '' : `${redacted} `}${id}`,
        icon: keyIcon,
        href: `/console/requests?${new URLSearchParams({ workspace, key: id }).toString()}`,
      })),
    ]
  },
  async search(text, signal) {
    const { data } = await api('listWorkspaces', { query: { search: text, limit: 5 }, signal })
    return data.map(({ name }) => ({
      kind: 'Workspace' as const,
      title: name,
      icon: organizationIcon,
      href: workspacePath(name),
    }))
  },
}
