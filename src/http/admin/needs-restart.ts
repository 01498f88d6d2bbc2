import { Type } from 'typebox'
import { settingText, type PendingSetting } from '../../core/settings.ts'

/** Settings that the file changes and the service takes only when it starts. */
export const needsRestartSchema = Type.Array(
  Type.Object({
    key: Type.String({ description: 'As in weir.yaml. catalog: the models are in another file now.' }),
    value: Type.String({ description: 'What the file says now.' }),
  }),
  { description: 'What the file says now and the service takes only when it restarts.' },
)

export function pendingView({ key, value }: PendingSetting): { readonly key: string; readonly value: string } {
  return { key, value: settingText(value) }
}
