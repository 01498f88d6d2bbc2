import { useRoute } from 'preact-iso/router'
import { useState } from 'preact/hooks'
import { Problem, useAction } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { time } from '../../shared/format.ts'
import { amount, Field, Form } from '../../shared/form.tsx'
import { Copy, PageHead, Ready, Table } from '../../shared/parts.tsx'
import { api, type Answer, type Workspace } from '../api.ts'
import { may, May } from '../session.tsx'
import { lanePath } from '../paths.ts'
import { WorkspaceUse } from '../workspace-use.tsx'

/** One workspace: what it uses, its keys and invoices, its limits, its buyer, its prices, and a link to its console. */
export function WorkspacePage() {
  const name = useRoute().params['name'] ?? ''
  const loaded = useData(
    async (signal) => {
      const [workspace, prices, engines] = await Promise.all([
        api('getWorkspace', { path: { workspace: name }, signal }),
        api('listWorkspacePrices', { path: { workspace: name }, signal }),
        may('listEngines') ? api('listEngines', { signal }) : { data: [] },
      ])
      const models = [...new Set(engines.data.map(({ model }) => model))]
      const lanes = engines.data.filter(({ workspace }) => workspace === name).map(({ lane }) => lane)
      return { workspace, prices: prices.data, models, lanes }
    },
    [name],
  )
  return (
    <>
      <PageHead title={name}>
        <ConsoleLink workspace={name} />
      </PageHead>
      <Ready of={loaded}>
        {({ workspace, prices, models, lanes }) => (
          <>
            <WorkspaceUse of={workspace} />
            <Settings key={workspace.id} of={workspace} changed={loaded.reload} />
            <Prices of={prices} workspace={name} models={models} changed={loaded.reload} />
            <section class="stack" aria-labelledby="lanes" hidden={!may('listEngines')}>
              <h2 id="lanes">Reserved capacity</h2>
              {lanes.length === 0 ? <p class="soft">It has none. The catalog reserves it.</p> : null}
              {lanes.map((lane) => (
                <a key={lane} href={lanePath(lane)}>
                  {lane}
                </a>
              ))}
            </section>
          </>
        )}
      </Ready>
    </>
  )
}

function ConsoleLink({ workspace }: { workspace: string }) {
  const [link, setLink] = useState<Answer<'issueConsoleLink'>>()
  async function issue(): Promise<void> {
    setLink(await api('issueConsoleLink', { path: { workspace } }))
  }
  if (!link) {
    return (
      <May call="issueConsoleLink">
        <button type="button" onClick={() => void issue()}>
          Issue a link to its console
        </button>
      </May>
    )
  }
  return (
    <div class="stack tight">
      <span class="small soft">Works once, until {time(link.expires_at)}. Put the public address in front of it.</span>
      <div class="row">
        <code class="secret wrap">{link.path}</code>
        <Copy text={link.path} />
      </div>
    </div>
  )
}

type Change = Parameters<typeof api<'changeWorkspace'>>[1]['body']

/** Each field of the form, named after the parameter that it sets. */
const typedOf = ({ spend_limit: limit, spend_limit_kind: kind, buyer, ...workspace }: Workspace) => ({
  requests_per_minute: String(workspace.requests_per_minute),
  tokens_per_minute: String(workspace.tokens_per_minute ?? ''),
  spend_limit: limit ?? '',
  spend_limit_kind: kind ?? 'hard',
  'buyer.name': buyer.name ?? '',
  'buyer.abn': buyer.abn ?? '',
  'buyer.address': buyer.address ?? '',
  'buyer.purchase_order': buyer.purchase_order ?? '',
  'buyer.email': buyer.email ?? '',
})
type Typed = ReturnType<typeof typedOf>

const changeOf = (typed: Typed): Change => {
  const text = (name: keyof Typed): string | null => typed[name].trim() || null
  return {
    requests_per_minute: text('requests_per_minute') === null ? null : Number(typed.requests_per_minute),
    tokens_per_minute: text('tokens_per_minute') === null ? null : Number(typed.tokens_per_minute),
    spend_limit: text('spend_limit'),
    ...(text('spend_limit') === null ? {} : { spend_limit_kind: typed.spend_limit_kind }),
    buyer: {
      name: text('buyer.name'),
      abn: text('buyer.abn'),
      address: text('buyer.address'),
      purchase_order: text('buyer.purchase_order'),
      email: text('buyer.email'),
    },
  }
}

function Settings({ of: workspace, changed }: { of: Workspace; changed: () => void }) {
  const [typed, setTyped] = useState(() => typedOf(workspace))
  const [isSaved, setSaved] = useState(false)
  const action = useAction()
  async function save(): Promise<void> {
    setSaved(false)
    const body = changeOf(typed)
    setTyped(typedOf(await api('changeWorkspace', { path: { workspace: workspace.name }, body })))
    setSaved(true)
    changed()
  }
  const field = <Name extends keyof Typed>(name: Name) => ({
    name,
    value: typed[name],
    onInput(event: { currentTarget: { value: string } }): void {
      setTyped({ ...typed, [name]: event.currentTarget.value })
      setSaved(false)
    },
  })
  return (
    <Form class="panel stack" action={action} submit={save}>
      <h2>Limits and buyer</h2>
      <fieldset class="number-fields wide">
        <legend>Limits</legend>
        <Field label="Requests a minute" hint="Empty: the default of the service.">
          <input {...field('requests_per_minute')} type="number" min={1} max={100_000_000} />
        </Field>
        <Field label="Tokens a minute" hint="Input and output. Empty: none.">
          <input {...field('tokens_per_minute')} type="number" min={1} max={100_000_000} />
        </Field>
        <Field label="Spend limit, A$ a month" hint="Empty: none.">
          <input {...field('spend_limit')} {...amount} />
        </Field>
        <Field label="Kind of limit">
          <select {...field('spend_limit_kind')}>
            <option value="hard">hard: refuses requests</option>
            <option value="soft">soft: only reports</option>
          </select>
        </Field>
      </fieldset>
      <fieldset class="number-fields wide">
        <legend>Buyer on invoices</legend>
        <Field label="Buyer">
          <input {...field('buyer.name')} maxLength={1000} />
        </Field>
        <Field label="ABN">
          <input
            {...field('buyer.abn')}
            inputMode="numeric"
            pattern="\s*(\d\s*){11}"
            title="Enter an ABN of 11 digits, such as 51 824 753 556."
          />
        </Field>
        <Field label="Purchase order">
          <input {...field('buyer.purchase_order')} maxLength={1000} />
        </Field>
        <Field label="E-mail for invoices" hint="Empty: invoices are not sent.">
          <input {...field('buyer.email')} type="email" maxLength={254} />
        </Field>
        <div class="whole-row">
          <Field label="Address">
            <input {...field('buyer.address')} maxLength={1000} />
          </Field>
        </div>
      </fieldset>
      <Problem of={action} />
      <div role="status">{isSaved ? <div class="notice">Saved.</div> : null}</div>
      <May call="changeWorkspace">
        <div>
          <button type="submit" class="primary" disabled={action.isRunning}>
            Save
          </button>
        </div>
      </May>
    </Form>
  )
}

function Prices({
  of: prices,
  workspace,
  models,
  changed,
}: {
  of: Answer<'listWorkspacePrices'>['data']
  workspace: string
  models: readonly string[]
  changed: () => void
}) {
  const [model = models[0] ?? '', setModel] = useState<string>()
  const [input, setInput] = useState('')
  const [output, setOutput] = useState('')
  const action = useAction()
  const change = (act: () => Promise<unknown>): Promise<boolean> =>
    action.run(async () => {
      await act()
      changed()
    })
  async function set(): Promise<void> {
    const typed = { input_per_million: input.trim(), output_per_million: output.trim() }
    const body = Object.fromEntries(Object.entries(typed).filter(([, price]) => price !== ''))
    await api('setWorkspacePrice', { path: { workspace, model }, body })
    changed()
  }
  return (
    <section class="panel stack" aria-labelledby="prices">
      <h2 id="prices">Its own prices</h2>
      {prices.length === 0 ? (
        <p class="soft">It pays the list prices.</p>
      ) : (
        <Table
          caption="Its own prices"
          rows={prices}
          keyOf={({ model }) => model}
          columns={[
            { title: 'Model', cell: ({ model }) => <span class="name-cell">{model}</span> },
            { title: 'Prices in A$', cell: ({ pricing }) => pricesText(pricing) },
            {
              title: 'Action',
              isAction: true,
              cell: ({ model }) => (
                <May call="clearWorkspacePrice">
                  <button
                    type="button"
                    class="plain"
                    aria-label={`Back to the list price for ${model}`}
                    onClick={() => void change(() => api('clearWorkspacePrice', { path: { workspace, model } }))}
                  >
                    Back to the list price
                  </button>
                </May>
              ),
            },
          ]}
        />
      )}
      <May call="setWorkspacePrice">
        <Form class="row end" action={action} submit={set}>
          <Field label="Model">
            <select name="model" required value={model} onInput={(event) => setModel(event.currentTarget.value)}>
              {models.map((it) => (
                <option key={it} value={it}>
                  {it}
                </option>
              ))}
            </select>
          </Field>
          <Field label="Input, A$ / 1M tokens">
            <input
              name="input_per_million"
              {...amount}
              value={input}
              onInput={(event) => setInput(event.currentTarget.value)}
            />
          </Field>
          <Field label="Output, A$ / 1M tokens">
            <input
              name="output_per_million"
              {...amount}
              value={output}
              onInput={(event) => setOutput(event.currentTarget.value)}
            />
          </Field>
          <button type="submit" disabled={(input + output).trim() === '' || action.isRunning}>
            Set the price
          </button>
        </Form>
      </May>
      <Problem of={action} />
    </section>
  )
}

function pricesText(pricing: object): string {
  return Object.entries(pricing)
    .map(([name, price]) => `${name.replaceAll('_', ' ')} ${typeof price === 'string' ? price : JSON.stringify(price)}`)
    .join(', ')
}
