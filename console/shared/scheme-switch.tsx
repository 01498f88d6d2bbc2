import type { HTMLAttributes } from 'preact'
import { Icon } from './icon.tsx'
import { deviceDesktopIcon, moonIcon, sunIcon } from './icons.ts'

declare module 'preact' {
  namespace JSX {
    interface IntrinsicElements {
      'scheme-switch': HTMLAttributes<HTMLElement>
    }
  }
}

const schemes = [
  ['light', 'Light', sunIcon],
  ['dark', 'Dark', moonIcon],
  ['system', 'As the system', deviceDesktopIcon],
] as const

/** src/server/theme/scheme.js does the rest: it has to run before the first paint. */
export function SchemeSwitch() {
  return (
    <scheme-switch role="group" aria-label="Colours">
      {schemes.map(([value, title, icon]) => (
        <button key={value} type="button" value={value} aria-label={title} title={title}>
          <Icon of={icon} />
        </button>
      ))}
    </scheme-switch>
  )
}
