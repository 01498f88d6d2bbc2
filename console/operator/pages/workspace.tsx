import { useRoute } from 'preact-iso'
import { useState } from 'preact/hooks'
import { Problem, useAction } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { time } from '../../shared/format.ts'
import { Copy, Field, PageHead, Ready, Table } from '../../shared/parts.tsx'
import { api, type Answer, type Workspace } from '../api.ts'
import { lanePath } from '../live.ts'

/** One workspace: its limits, its buyer, its prices, and a link to its console. */
export function WorkspacePage() {
  const name = useRoute().params['name'] ?? ''
  const loaded = useData(
    async (signal) => {
      const [workspace, prices, engines] = await Promise.all([
        api('getWorkspace', { path: { workspace: name }, signal }),
        api('listWorkspacePrices', { path: { workspace: name }, signal }),
        api('listEngines', { signal }),
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
            <Settings key={workspace.id} of={workspace} changed={loaded.reload} />
            <Prices of={prices} workspace={name} models={models} changed={loaded.reload} />
            <section class="stack" aria-labelledby="lanes">
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
      <button type="button" onClick={() => void issue()}>
        Issue a link to its console
      </button>
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

function Settings({ of: workspace, changed }: { of: Workspace; changed: () => void }) {
  const { buyer } = workspace
  const [isSaved, setSaved] = useState(false)
  const action = useAction()
  async function save(form: HTMLFormElement): Promise<void> {
    const text = (name: string): string | null =>
      (form.elements.namedItem(name) as HTMLInputElement).value.trim() || null
    const limit = text('spend_limit')
    const change: Change = {
      requests_per_minute: Number(text('requests_per_minute')) || null,
      spend_limit: limit,
      ...(limit === null ? {} : { spend_limit_kind: text('spend_limit_kind') as 'soft' | 'hard' }),
      buyer: { name: text('name'), abn: text('abn'), address: text('address'), purchase_order: text('purchase_order') },
    }
    setSaved(false)
    await api('changeWorkspace', { path: { workspace: workspace.name }, body: change })
    setSaved(true)
    changed()
  }
  return (
    <form
      class="panel stack"
      onSubmit={(event) => {
        event.preventDefault()
        const form = event.currentTarget
        void action.run(() => save(form))
      }}
    >
      <h2>Limits and buyer</h2>
      <div class="number-fields wide">
        <Field label="Requests a minute">
          <input name="requests_per_minute" type="number" min={1} value={workspace.requests_per_minute} />
        </Field>
        <Field label="Spend limit, A$ a month" hint="Empty: none.">
          <input name="spend_limit" inputMode="decimal" value={workspace.spend_limit ?? ''} />
        </Field>
        <Field label="Kind of limit">
          <select name="spend_limit_kind" value={workspace.spend_limit_kind ?? 'hard'}>
            <option value="hard">hard: refuses requests</option>
            <option value="soft">soft: only reports</option>
          </select>
        </Field>
        <Field label="Buyer">
          <input name="name" maxLength={1000} value={buyer.name ?? ''} />
        </Field>
        <Field label="ABN">
          <input name="abn" value={buyer.abn ?? ''} />
        </Field>
        <Field label="Address">
          <input name="address" maxLength={1000} value={buyer.address ?? ''} />
        </Field>
        <Field label="Purchase order">
          <input name="purchase_order" maxLength={1000} value={buyer.purchase_order ?? ''} />
        </Field>
      </div>
      <Problem of={action} />
      <div role="status">{isSaved ? <div class="notice">Saved.</div> : null}</div>
      <div>
        <button type="submit" class="primary" disabled={action.isRunning}>
          Save
        </button>
      </div>
    </form>
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
  const [hasPrice, setHasPrice] = useState(false)
  const action = useAction()
  const change = (act: () => Promise<unknown>): Promise<boolean> =>
    action.run(async () => {
      await act()
      changed()
    })
  const textIn = (form: HTMLFormElement, name: string): string =>
    (form.elements.namedItem(name) as HTMLInputElement).value.trim()
  const pricesIn = (form: HTMLFormElement) =>
    Object.fromEntries(
      (['input_per_million', 'output_per_million'] as const)
        .map((name) => [name, textIn(form, name)] as const)
        .filter(([, price]) => price !== ''),
    )
  const set = (form: HTMLFormElement): Promise<boolean> =>
    change(() => api('setWorkspacePrice', { path: { workspace, model: textIn(form, 'model') }, body: pricesIn(form) }))
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
            { title: 'Model', cell: ({ model }) => model },
            { title: 'Prices in A$', cell: ({ pricing }) => pricesText(pricing) },
            {
              title: 'Action',
              cell: ({ model }) => (
                <button
                  type="button"
                  class="plain"
                  aria-label={`List price for ${model}`}
                  onClick={() => void change(() => api('clearWorkspacePrice', { path: { workspace, model } }))}
                >
                  Back to the list price
                </button>
              ),
            },
          ]}
        />
      )}
      <form
        class="row end"
        onInput={(event) => setHasPrice(Object.keys(pricesIn(event.currentTarget)).length > 0)}
        onSubmit={(event) => {
          event.preventDefault()
          void set(event.currentTarget)
        }}
      >
        <Field label="Model">
          <select name="model" required>
            {models.map((model) => (
              <option key={model} value={model}>
                {model}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Input, A$ / 1M tokens">
          <input name="input_per_million" inputMode="decimal" />
        </Field>
        <Field label="Output, A$ / 1M tokens">
          <input name="output_per_million" inputMode="decimal" />
        </Field>
        <button type="submit" disabled={!hasPrice || action.isRunning}>
          Set the price
        </button>
      </form>
      <Problem of={action} />
    </section>
  )
}

function pricesText(pricing: object): string {
  return Object.entries(pricing)
    .map(([name, price]) => `${name.replaceAll('_', ' ')} ${typeof price === 'string' ? price : JSON.stringify(price)}`)
    .join(', ')
}
