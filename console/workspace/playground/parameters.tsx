import { Failure } from '../../shared/client.ts'
import { Field } from '../../shared/form.tsx'
import type { Model } from '../api.ts'

/** The settings of a chat as entered in the form: text, until the request is made. */
export type Settings = Readonly<Record<string, string>>

interface NumberSetting {
  readonly name: string
  readonly title: string
  readonly min?: number
  readonly max?: number
  readonly step: number
}

/** Every model takes max_tokens; the others are shown if this model supports them. */
const numbers: readonly NumberSetting[] = [
  { name: 'max_tokens', title: 'Answer, tokens', min: 1, step: 1 },
  { name: 'temperature', title: 'Temperature', min: 0, max: 2, step: 0.1 },
  { name: 'top_p', title: 'Top p', min: 0, max: 1, step: 0.05 },
  { name: 'top_k', title: 'Top k', min: 1, step: 1 },
  { name: 'min_p', title: 'Min p', min: 0, max: 1, step: 0.05 },
  { name: 'frequency_penalty', title: 'Frequency penalty', min: -2, max: 2, step: 0.1 },
  { name: 'presence_penalty', title: 'Presence penalty', min: -2, max: 2, step: 0.1 },
  { name: 'repetition_penalty', title: 'Repetition penalty', min: 0.1, max: 2, step: 0.05 },
  { name: 'seed', title: 'Seed', step: 1 },
]

export function ParameterForm({
  model,
  settings,
  change,
}: {
  model: Model
  settings: Settings
  change: (changes: Settings) => void
}) {
  const takes = (name: string): boolean => name === 'max_tokens' || model.supported_parameters.includes(name)
  const set =
    (name: string) =>
    (event: { currentTarget: { value: string } }): void =>
      change({ ...settings, [name]: event.currentTarget.value })
  return (
    <div class="stack">
      <div class="number-fields">
        {numbers
          .filter(({ name }) => takes(name))
          .map(({ name, title, ...limits }) => (
            <Field key={name} label={title}>
              <input
                name={name}
                type="number"
                {...limits}
                placeholder={name === 'max_tokens' ? String(model.default_max_tokens) : 'default'}
                value={settings[name] ?? ''}
                onInput={set(name)}
              />
            </Field>
          ))}
      </div>
      {takes('stop') ? (
        <Field label="Stop at" hint="One text per line.">
          <textarea name="stop" rows={2} value={settings['stop'] ?? ''} onInput={set('stop')} class="code" />
        </Field>
      ) : null}
      {takes('tools') ? (
        <Field label="Tools" hint="A JSON list of functions.">
          <textarea
            name="tools"
            rows={3}
            class="code"
            spellcheck={false}
            placeholder={'[{"type": "function", "function": {"name": "…"}}]'}
            value={settings['tools'] ?? ''}
            onInput={set('tools')}
          />
        </Field>
      ) : null}
      {takes('response_format') ? (
        <Field label="JSON schema of the answer" hint="The answer is JSON that fits it.">
          <textarea
            name="response_format"
            rows={3}
            class="code"
            spellcheck={false}
            placeholder={'{"type": "object", "properties": {…}}'}
            value={settings['response_format'] ?? ''}
            onInput={set('response_format')}
          />
        </Field>
      ) : null}
    </div>
  )
}

/** The fields of the request. Throws a description of the mistake in the form's JSON. */
export function fieldsOf(settings: Settings): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const { name } of numbers) if (settings[name]) fields[name] = Number(settings[name])
  const stops = (settings['stop'] ?? '').split('\n').filter(Boolean)
  if (stops.length > 0) fields['stop'] = stops
  if (settings['tools']?.trim()) fields['tools'] = parsed('tools', settings['tools'])
  if (settings['response_format']?.trim()) {
    const schema = parsed('response_format', settings['response_format'])
    fields['response_format'] = { type: 'json_schema', json_schema: { name: 'answer', schema } }
  }
  return fields
}

function parsed(field: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Failure(0, 'invalid_json', `This is not valid JSON. ${(error as Error).message}`, field)
  }
}
