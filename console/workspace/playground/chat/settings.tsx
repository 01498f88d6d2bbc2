import type { RefObject } from 'preact'
import { Failure } from '../../../shared/client.ts'
import { Field } from '../../../shared/form.tsx'
import { SheetHead } from '../../../shared/parts.tsx'
import type { Model } from '../../api.ts'
import { SchemaView, ToolsView } from './schema.tsx'

/** The settings of a chat as entered in the form: text, until the request is made. */
export type Settings = Readonly<Record<string, string>>

interface NumberSetting {
  readonly name: string
  readonly title: string
  readonly min?: number
  readonly max?: number
  readonly step: number
  /** The highest value of the slider where the setting itself has none. */
  readonly usualMax?: number
  /** Where the slider stands while the model's own default applies. */
  readonly usual?: number
}

const numbers: readonly NumberSetting[] = [
  { name: 'max_tokens', title: 'Longest answer, tokens', min: 1, step: 1 },
  { name: 'temperature', title: 'Temperature', min: 0, max: 2, step: 0.1, usual: 1 },
  { name: 'top_p', title: 'Top p', min: 0, max: 1, step: 0.05, usual: 1 },
  { name: 'top_k', title: 'Top k', min: 1, step: 1, usualMax: 200, usual: 40 },
  { name: 'min_p', title: 'Min p', min: 0, max: 1, step: 0.05, usual: 0 },
  { name: 'frequency_penalty', title: 'Frequency penalty', min: -2, max: 2, step: 0.1, usual: 0 },
  { name: 'presence_penalty', title: 'Presence penalty', min: -2, max: 2, step: 0.1, usual: 0 },
  { name: 'repetition_penalty', title: 'Repetition penalty', min: 0.1, max: 2, step: 0.05, usual: 1 },
  { name: 'seed', title: 'Seed', step: 1 },
]

/** Every model takes max_tokens; the others only if it supports them. */
const takes = (model: Model, name: string): boolean =>
  name === 'max_tokens' || model.supported_parameters.includes(name)

/**
 * A sheet at the side of the page. It is part of the form of the chat, so that a value that is not valid is marked in it.
 * Each model gets only the settings that it supports.
 */
export function SettingsSheet({
  sheet,
  models,
  system,
  settings,
  change,
}: {
  sheet: RefObject<HTMLDialogElement | null>
  models: readonly Model[]
  system: string
  settings: Settings
  change: (system: string, settings: Settings) => void
}) {
  const isTaken = (name: string): boolean => models.some((model) => takes(model, name))
  const tokensMax = Math.max(...models.map((model) => model.max_completion_tokens))
  const tokensUsual = Math.max(...models.map((model) => model.default_max_tokens))
  const set =
    (name: string) =>
    (event: { currentTarget: { value: string } }): void =>
      change(system, { ...settings, [name]: event.currentTarget.value })
  return (
    <dialog
      ref={sheet}
      class="sheet"
      aria-label="Settings"
      onKeyDown={(event) => {
        // Enter in a field would send the message.
        if (event.key === 'Enter' && event.target instanceof HTMLInputElement) event.preventDefault()
      }}
    >
      <SheetHead title="Settings" close={() => sheet.current?.close()} />
      <div class="stack">
        <label>
          System prompt
          <textarea rows={4} value={system} onInput={(event) => change(event.currentTarget.value, settings)} />
        </label>
        {numbers
          .filter(({ name }) => isTaken(name))
          .map((setting) => (
            <NumberRow
              key={setting.name}
              setting={
                setting.name === 'max_tokens' ? { ...setting, usualMax: tokensMax, usual: tokensUsual } : setting
              }
              placeholder={setting.name === 'max_tokens' ? String(tokensUsual) : 'default'}
              value={settings[setting.name] ?? ''}
              set={set(setting.name)}
            />
          ))}
        {isTaken('stop') ? (
          <Field label="Stop the answer at" hint="One text per line.">
            <textarea name="stop" rows={2} value={settings['stop'] ?? ''} onInput={set('stop')} class="code" />
          </Field>
        ) : null}
        {isTaken('tools') ? (
          <>
            <Field label="Tools" hint="A JSON list of functions.">
              <textarea
                name="tools"
                rows={4}
                class="code"
                spellcheck={false}
                placeholder={'[{"type": "function", "function": {"name": "…"}}]'}
                value={settings['tools'] ?? ''}
                onInput={set('tools')}
              />
            </Field>
            <ToolsView text={settings['tools'] ?? ''} />
          </>
        ) : null}
        {isTaken('response_format') ? (
          <>
            <Field label="JSON schema of the answer" hint="The answer is JSON that fits it.">
              <textarea
                name="response_format"
                rows={4}
                class="code"
                spellcheck={false}
                placeholder={'{"type": "object", "properties": {…}}'}
                value={settings['response_format'] ?? ''}
                onInput={set('response_format')}
              />
            </Field>
            <SchemaView text={settings['response_format'] ?? ''} />
          </>
        ) : null}
        <div class="row">
          <button type="button" onClick={() => change('', {})}>
            Reset all
          </button>
        </div>
      </div>
    </dialog>
  )
}

function NumberRow({
  setting: { name, title, min, max, step, usualMax, usual },
  placeholder,
  value,
  set,
}: {
  setting: NumberSetting
  placeholder: string
  value: string
  set: (event: { currentTarget: { value: string } }) => void
}) {
  const top = max ?? usualMax
  const limits = { step, ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) }
  return (
    <div class={top === undefined ? 'number-row' : 'number-row with-slider'}>
      <Field label={title}>
        <input name={name} type="number" {...limits} placeholder={placeholder} value={value} onInput={set} />
      </Field>
      {top === undefined || min === undefined ? null : (
        <input
          type="range"
          aria-label={`Slider of ${title}`}
          class={value === '' ? 'unset' : ''}
          aria-valuetext={value === '' ? 'default' : value}
          min={min}
          max={top}
          step={step}
          value={value === '' ? usual : value}
          onInput={set}
        />
      )}
    </div>
  )
}

/** The fields of a request to this model. Throws a description of the mistake in the form's JSON. */
export function fieldsOf(settings: Settings, model: Model): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const { name } of numbers) if (settings[name]) fields[name] = Number(settings[name])
  const stops = (settings['stop'] ?? '').split('\n').filter(Boolean)
  if (stops.length > 0) fields['stop'] = stops
  if (settings['tools']?.trim()) fields['tools'] = parsed('tools', settings['tools'])
  if (settings['response_format']?.trim()) {
    const schema = parsed('response_format', settings['response_format'])
    fields['response_format'] = { type: 'json_schema', json_schema: { name: 'answer', schema } }
  }
  return Object.fromEntries(Object.entries(fields).filter(([name]) => takes(model, name)))
}

function parsed(field: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Failure(0, 'invalid_json', `This is not valid JSON. ${(error as Error).message}`, field)
  }
}
