import { aiModelIcon, keyIcon } from '../shared/icons.ts'
import type { PlaceFinder } from '../shared/palette.tsx'
import { api } from './api.ts'
import { modelPath } from './model-facts.ts'

/** What the palette finds besides pages. */
export const placeFinder: PlaceFinder = {
  async known(signal) {
    const [models, keys] = await Promise.all([
      api('models', { query: { scope: 'catalog' }, signal }),
      api('keys', { query: { limit: 200 }, signal }),
    ])
    return [
      ...models.data.map(({ id, name }) => ({
        kind: 'Model' as const,
        title: name,
        note: id,
        icon: aiModelIcon,
        href: modelPath(id),
      })),
      ...keys.data.map(({ id, name, redacted }) => ({
        kind: 'Key' as const,
        title: name ?? redacted,
        note: `${name === null ? '' : `${redacted} `}${id}`,
        icon: keyIcon,
        href: `/console/requests?${new URLSearchParams({ key: id }).toString()}`,
      })),
    ]
  },
}
