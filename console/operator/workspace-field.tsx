import { useId } from 'preact/hooks'
import { useData } from '../shared/data.ts'
import { Field } from '../shared/form.tsx'
import { api } from './api.ts'

/** The name of a workspace. There may be thousands, so the service suggests those that match the input. */
export function WorkspaceField({
  value,
  choose,
  label = 'Workspace',
  isRequired = true,
}: {
  value: string
  choose: (name: string) => void
  label?: string
  isRequired?: boolean
}) {
  const id = useId()
  const found = useData((signal) => api('listWorkspaces', { query: { search: value, limit: 20 }, signal }), [value])
  return (
    <>
      <Field label={label}>
        <input
          name="workspace"
          list={id}
          required={isRequired}
          maxLength={64}
          autocomplete="off"
          spellcheck={false}
          value={value}
          onInput={(event) => choose(event.currentTarget.value)}
        />
      </Field>
      <datalist id={id}>
        {found.state === 'ready' ? found.data.data.map(({ name }) => <option key={name} value={name} />) : null}
      </datalist>
    </>
  )
}
