import { Type } from 'typebox'
import { settingText, type PendingSetting } from '../shared/settings.ts'

/** Settings that changed in the file and that the service applies only when it restarts. */
export const needsRestartSchema = Type.Array(
  Type.Object({
    key: Type.String({ description: 'As in weir.yaml. catalog: the models are in another file now.' }),
    value: Type.String({ description: 'What the file says now.' }),
  }),
  { description: 'Settings that changed in the file and that the service applies only when it restarts.', example: [] },
)

export function pendingView({ key, value }: PendingSetting): { readonly key: string; readonly value: string } {
  return { key, value: settingText(value) }
}
