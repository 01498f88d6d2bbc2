import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Confirm, Problem, useAction } from './action.tsx'
import { date, sydneyDate } from './format.ts'
import { Field, Form } from './form.tsx'
import { Icon } from './icon.tsx'
import { keyIcon, plusIcon } from './icons.ts'
import { changedLimits, LimitFields, LimitsInWords, typedLimits, type KeyLimits } from './key-limits.tsx'
import { Ago, Copy, Dialog, Empty, PageHead, State, Table, type Column } from './parts.tsx'
import { Paged, type Pages } from './pages.tsx'

/** The page of keys, which both consoles have: a list, creating, changing and revoking one. */

export interface KeyRow extends KeyLimits {
  readonly id: string
  readonly redacted: string
  readonly name: string | null
  readonly expires_at: string | null
  readonly last_used_at: string | null
  readonly revoked: string | null
}

export interface NewKey extends Partial<KeyLimits> {
  readonly name: string
  readonly expires_at?: string
}

/** Fields that are left out stay as they are. */
export interface KeyChange extends Partial<KeyLimits> {
  readonly name?: string
  readonly expires_at?: string | null
}

type Question<Key> = { readonly kind: 'create' } | { readonly kind: 'change' | 'revoke'; readonly key: Key }

export function KeysPage<Key extends KeyRow>({
  about,
  pages,
  filters,
  columns,
  mark,
  create,
  change,
  revoke,
  mayChange,
}: {
  about: string
  pages: Pages<Key, string>
  /** Above the list. */
  filters?: ComponentChildren
  /** Columns between those that every list of keys shows. */
  columns: readonly Column<Key>[]
  /** Next to the name of a key. */
  mark?: (key: Key) => ComponentChildren
  create: KeyMaker
  change: (key: Key, change: KeyChange) => Promise<void>
  revoke: { readonly act: (key: Key) => Promise<void>; readonly warning?: (key: Key) => string }
  /** Whether the person may create, change and revoke keys. */
  mayChange: boolean
}) {
  const [question, setQuestion] = useState<Question<Key>>()
  const close = (): void => {
    setQuestion(undefined)
    pages.reload()
  }
  const action: Column<Key> = {
    title: 'Action',
    isAction: true,
    cell: (key) =>
      key.revoked === null ? (
        <div class="row-actions">
          <button
            type="button"
            class="plain"
            aria-label={`Change ${key.name ?? key.id}`}
            onClick={() => setQuestion({ kind: 'change', key })}
          >
            Change
          </button>
          <button
            type="button"
            class="plain"
            aria-label={`Revoke ${key.name ?? key.id}`}
            onClick={() => setQuestion({ kind: 'revoke', key })}
          >
            Revoke
          </button>
        </div>
      ) : null,
  }
  return (
    <>
      <PageHead title="Keys" about={about}>
        {mayChange ? (
          <button type="button" class="primary" onClick={() => setQuestion({ kind: 'create' })}>
            <Icon of={plusIcon} />
            Create a key
          </button>
        ) : null}
      </PageHead>
      {filters}
      <Paged of={pages}>
        {(keys) =>
          keys.length === 0 ? (
            <Empty icon={keyIcon} title="There are no keys here">
              Programs identify themselves with a key.
              {mayChange ? (
                <button type="button" onClick={() => setQuestion({ kind: 'create' })}>
                  <Icon of={plusIcon} />
                  Create the first key
                </button>
              ) : null}
            </Empty>
          ) : (
            <Table
              caption="Keys"
              rows={keys}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: 'Key',
                  cell: (key) => (
                    <>
                      {key.name ?? <span class="soft">no name</span>} <code class="small unbroken">{key.redacted}</code>{' '}
                      {mark?.(key)}
                      <br />
                      <code class="small soft">{key.id}</code>
                    </>
                  ),
                },
                {
                  title: 'State',
                  cell: (key) => (
                    <>
                      <KeyState of={key} />
                      <LimitsInWords of={key} />
                    </>
                  ),
                },
                { title: 'Last used', cell: (key) => <Ago at={key.last_used_at} /> },
                ...columns,
                ...(mayChange ? [action] : []),
              ]}
            />
          )
        }
      </Paged>
      {question?.kind === 'create' ? <CreateKey {...create} close={close} /> : null}
      {question?.kind === 'change' ? (
        <ChangeKey of={question.key} act={(changes) => change(question.key, changes)} close={close} />
      ) : null}
      {question?.kind === 'revoke' ? (
        <Confirm
          title={`Revoke ${question.key.name ?? question.key.id}?`}
          verb="Revoke"
          act={() => revoke.act(question.key)}
          close={close}
        >
          <p>
            Programs that use this key are refused from now on. This cannot be undone.{' '}
            {revoke.warning?.(question.key) ?? ''}
          </p>
        </Confirm>
      ) : null}
    </>
  )
}

export function KeyState({ of: { revoked, expires_at: expires } }: { of: Pick<KeyRow, 'revoked' | 'expires_at'> }) {
  if (revoked !== null) return <State is="idle">Revoked {date(revoked)}</State>
  if (expires === null) return <State is="good">Valid</State>
  return Date.parse(expires) <= Date.now() ? (
    <State is="idle">Expired {date(expires)}</State>
  ) : (
    <State is="good">Until {date(Date.parse(expires) - 1)}</State>
  )
}

export interface KeyMaker {
  /** Fields of the form before the usual ones. */
  readonly fields?: ComponentChildren
  /** Whether they are filled in. */
  readonly isReady?: boolean
  /** Resolves with the key itself. */
  readonly make: (key: NewKey) => Promise<string>
  /** How to call the API with it. */
  readonly sample?: (key: string) => ComponentChildren
}

export function CreateKey({ fields, isReady = true, make, sample, close }: KeyMaker & { readonly close: () => void }) {
  const [name, setName] = useState('')
  const [expires, setExpires] = useState('')
  const [limits, setLimits] = useState(typedLimits(undefined))
  const [made, setMade] = useState<string>()
  const action = useAction()
  const create = async (): Promise<void> =>
    setMade(
      await make({
        name,
        ...(expires === '' ? {} : { expires_at: expires }),
        ...changedLimits(typedLimits(undefined), limits),
      }),
    )
  if (made !== undefined) {
    return (
      <Dialog title={`The key for ${name}`} isKept close={close}>
        <p>Copy it now. It is not stored, so it cannot be shown again.</p>
        <code class="wrap secret">{made}</code>
        <div class="row">
          <Copy text={made} title="Copy the key" />
        </div>
        {sample?.(made)}
        <div class="row">
          <button type="button" class="primary" onClick={close}>
            I have copied it
          </button>
        </div>
      </Dialog>
    )
  }
  return (
    // The key exists once the request is sent, so the dialog stays until it is shown.
    <Dialog title="Create a key" isKept={action.isRunning} close={close}>
      <Form class="stack" action={action} submit={create}>
        {fields}
        <KeyFields name={name} setName={setName} expires={expires} setExpires={setExpires} />
        <LimitFields of={limits} set={setLimits} />
        <Problem of={action} />
        <div class="row">
          <button type="submit" class="primary" disabled={!isReady || name.trim() === '' || action.isRunning}>
            Create
          </button>
          <button type="button" disabled={action.isRunning} onClick={close}>
            Cancel
          </button>
        </div>
      </Form>
    </Dialog>
  )
}

function ChangeKey({
  of: key,
  act,
  close,
}: {
  of: KeyRow
  act: (change: KeyChange) => Promise<void>
  close: () => void
}) {
  // A key that expires at midnight works until the end of the day before.
  const lastDay = key.expires_at === null ? '' : sydneyDate(Date.parse(key.expires_at) - 1)
  const [name, setName] = useState(key.name ?? '')
  const [expires, setExpires] = useState(lastDay)
  const [limits, setLimits] = useState(typedLimits(key))
  const action = useAction()
  const change = {
    ...(name === (key.name ?? '') ? {} : { name }),
    ...(expires === lastDay ? {} : { expires_at: expires === '' ? null : expires }),
    ...changedLimits(typedLimits(key), limits),
  }
  return (
    <Dialog title={`Change ${key.name ?? key.id}`} close={close}>
      <Form class="stack" action={action} submit={async () => act(change).then(close)}>
        <p class="soft">
          <code>{key.redacted}</code> stays the same. A change applies from the next request on.
        </p>
        <KeyFields name={name} setName={setName} expires={expires} setExpires={setExpires} />
        <LimitFields of={limits} set={setLimits} />
        <Problem of={action} />
        <div class="row">
          <button
            type="submit"
            class="primary"
            disabled={Object.keys(change).length === 0 || name.trim() === '' || action.isRunning}
          >
            Save
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </Form>
    </Dialog>
  )
}

function KeyFields({
  name,
  setName,
  expires,
  setExpires,
}: {
  name: string
  setName: (name: string) => void
  expires: string
  setExpires: (expires: string) => void
}) {
  return (
    <>
      <Field label="What is it for?">
        <input
          name="name"
          required
          maxLength={100}
          autofocus
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </Field>
      <Field label="Last day" hint="In Sydney. Empty: the key does not expire.">
        <input
          name="expires_at"
          type="date"
          value={expires}
          onInput={(event) => setExpires(event.currentTarget.value)}
        />
      </Field>
    </>
  )
}
