import type { Deployment, Model } from '../../catalog/model.ts'
import { supportOf } from '../request/engine-operation.ts'

/**
 * Offers and hints of an agent that a chat with this model does not support. They are left out and named in a header of
 * the answer, because an agent could not handle a refusal.
 */
export interface LeftOut {
  /** `what` as text for people, and why. */
  add(what: string): void
  /** The value if the model and its engine support the parameter; otherwise undefined, and a warning. */
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
