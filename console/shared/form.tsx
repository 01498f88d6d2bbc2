import { cloneElement, createContext, type ComponentChildren, type JSX } from 'preact'
import { useContext, useId, useRef, useState } from 'preact/hooks'
import type { PageAction } from './action.tsx'
import type { Failure } from './client.ts'

/** Forms that keep what was typed, and mark every field that is not valid with what is wrong about it. */

type Problems = Readonly<Record<string, string>>
type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement

const FieldProblems = createContext<Problems>({})

/** Of a field for an amount in A$. */
export const amount = {
  inputMode: 'decimal',
  pattern: '\\s*\\d+(\\.\\d+)?\\s*',
  title: 'Enter an amount in A$ such as 250.00.',
} as const

/**
 * A field is named after the parameter of the API that it sets, so that an error of the service can be shown next to
 * it.
 */
export function Form({
  action,
  submit,
  children,
  ...attributes
}: {
  action: PageAction
  submit: () => Promise<void>
  class: string
  role?: 'search'
  children: ComponentChildren
}) {
  const [problems, setProblems] = useState<Problems>({})
  const form = useRef<HTMLFormElement>(null)

  function mark(found: Problems): void {
    setProblems(found)
    const marked = controlsOf(form.current).filter(({ name }) => name in found)
    // A field may be in a part of the form that is folded up, or in a sheet that is closed.
    for (const it of marked) it.closest('details')?.setAttribute('open', '')
    const [first] = marked
    const sheet = first?.closest('dialog')
    if (sheet?.open === false) sheet.showModal()
    first?.focus()
  }

  /** The service's error about a field is shown next to it; any other error is shown by the action. */
  async function send(): Promise<void> {
    try {
      await submit()
    } catch (error) {
      const { param, message } = error as Failure
      const field = param && controlsOf(form.current).find(({ name }) => name === param || name === topOf(param))
      if (!field) throw error
      mark({ [field.name]: message })
    }
  }

  function check(): void {
    const found = invalidIn(form.current)
    mark(found)
    if (Object.keys(found).length === 0) void action.run(send)
  }

  return (
    <form
      {...attributes}
      ref={form}
      // The browser would show one problem at a time, and not next to its field.
      noValidate
      onInput={({ target }) => {
        const { [(target as Control).name]: _, ...others } = problems
        setProblems(others)
      }}
      onSubmit={(event) => {
        event.preventDefault()
        check()
      }}
    >
      <FieldProblems.Provider value={problems}>{children}</FieldProblems.Provider>
    </form>
  )
}

export function Field({
  label,
  hint,
  children,
}: {
  label: string
  hint?: string
  children: JSX.Element & { props: { name?: string } }
}) {
  const id = useId()
  const problem = useContext(FieldProblems)[children.props.name ?? '']
  return (
    <label>
      {label}
      {problem === undefined
        ? children
        : cloneElement(children, { 'aria-invalid': 'true', 'aria-describedby': `${id}problem` })}
      {problem === undefined ? null : (
        <small class="field-problem" id={`${id}problem`}>
          {problem}
        </small>
      )}
      {hint === undefined ? null : <small>{hint}</small>}
    </label>
  )
}

function controlsOf(form: HTMLFormElement | null): readonly Control[] {
  return [...(form?.elements ?? [])].filter((it): it is Control => 'validity' in it && 'name' in it && it.name !== '')
}

/** A step is only the increment of the field's arrows. */
const rules = ['valueMissing', 'badInput', 'patternMismatch', 'rangeUnderflow', 'rangeOverflow'] as const

function invalidIn(form: HTMLFormElement | null): Problems {
  const invalid = controlsOf(form).filter(({ validity }) => rules.some((rule) => validity[rule]))
  return Object.fromEntries(
    invalid.map(({ name, validity, title, validationMessage }) => [
      name,
      // The browser only reports that the format is wrong. The title explains the format.
      validity.patternMismatch && title !== '' ? title : validationMessage,
    ]),
  )
}

/** "messages" for "messages[0].content". */
const topOf = (param: string): string => param.split(/[.[]/, 1)[0] ?? ''
