import type { Deployment, Model } from '../../core/catalog.ts'
import { supportOf } from '../engine-operation.ts'

/**
 * What an agent offers or hints at, and a chat with this model cannot take. It is left out and named in a header of the
 * answer, because an agent would not know what to do about a refusal.
 */
export interface LeftOut {
  /** `what` in words, and why. */
  add(what: string): void
  /** The value if the model and its engine take the parameter; otherwise undefined, and a warning. */
  hint<Value>(name: string, own: string, value: Value | null | undefined): Value | undefined
  readonly warnings: readonly string[]
}

const MAX_WARNINGS = 8

export function leftOut(model: Model, deployment: Deployment): LeftOut {
  const support = supportOf(deployment, 'chat')
  const warnings: string[] = []
  const add = (what: string): void => {
    if (warnings.length < MAX_WARNINGS && !warnings.includes(what)) warnings.push(what)
  }
  return {
    add,
    hint(name, own, value) {
      if (value === undefined || value === null) return undefined
      if (model.supportedParameters.includes(name) && support[name] !== 'refused') return value
      add(`${own} (${model.id} does not support it)`)
      return undefined
    },
    warnings,
  }
}
