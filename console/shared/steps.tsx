import type { ComponentChildren } from 'preact'
import { Icon } from './icon.tsx'
import { checkIcon } from './icons.ts'

/** What to do first, one after the other, with a tick at what is done. */

export interface Step {
  readonly title: string
  readonly isDone: boolean
  readonly content: ComponentChildren
}

export function Steps({ of: steps }: { of: readonly Step[] }) {
  const next = steps.findIndex(({ isDone }) => !isDone)
  return (
    <ol class="steps" aria-label="First steps">
      {steps.map(({ title, isDone, content }, index) => (
        <li key={title} class={isDone ? 'done' : undefined} aria-current={index === next ? 'step' : undefined}>
          <span class="step-mark">{isDone ? <Icon of={checkIcon} /> : index + 1}</span>
          <div class="stack">
            <h2>
              {title} {isDone ? <span class="visually-hidden">(done)</span> : null}
            </h2>
            {content}
          </div>
        </li>
      ))}
    </ol>
  )
}
