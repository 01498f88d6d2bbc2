import { useLocation } from 'preact-iso/router'
import { useData } from '../../shared/data.ts'
import { count, milliseconds } from '../../shared/format.ts'
import { Empty, PageHead, Ready, Segments, Stale, State, Table } from '../../shared/parts.tsx'
import { Arriving } from '../arriving.tsx'
import { api, type Model } from '../api.ts'
import { live, type Load } from '../live.ts'
import { publicModels } from '../session.ts'
import { availabilityOf, categoryNames, contextOf, modelPath, pricesOf, type Category } from '../model-facts.ts'

type Loads = ReadonlyMap<string, Load>

/** Every model with its prices and its load. */
export function ModelsPage() {
  const { samples, isStale } = live.use()
  const sample = samples.at(-1)
  const loads: Loads = new Map(sample?.models.map((it) => [it.model, it]))
  // A model that has become ready, or is being downloaded, has other details too.
  const ready = sample?.models.filter(({ available }) => available).length
  const arriving = sample?.downloads.map(({ model }) => model).join()
  const loaded = useData(
    async (signal) => (await api('models', { query: { scope: 'catalog' }, signal })).data,
    [ready, arriving],
  )
  return (
    <>
      <PageHead title="Models" about="Prices are in Australian dollars and exclude GST." />
      <Stale is={isStale} />
      <Arriving downloads={sample?.downloads ?? []} />
      <Ready of={loaded}>{(models) => <ModelBrowser models={models} loads={loads} />}</Ready>
    </>
  )
}

/** The same for people who are not signed in, without the load. */
export function PublicModelsPage() {
  return (
    <>
      <PageHead title="Models" about="List prices in Australian dollars, excluding GST.">
        <a class="button primary" href="/console/sign-in">
          Sign in
        </a>
      </PageHead>
      <ModelBrowser models={publicModels.value ?? []} loads={undefined} />
    </>
  )
}

/** The filters are in the address, so that a view can be shared. */
function ModelBrowser({ models, loads }: { models: readonly Model[]; loads: Loads | undefined }) {
  const { query, route } = useLocation()
  const { q: search = '', category = '', view = 'cards' } = query
  const filter = (changes: Record<string, string>): void => {
    const next = Object.entries({ q: search, category, view, ...changes }).filter(
      ([name, value]) => value !== '' && !(name === 'view' && value === 'cards'),
    )
    const text = new URLSearchParams(next).toString()
    route(`/console/models${text === '' ? '' : `?${text}`}`, true)
  }
  const shown = models.filter((model) => fits(model, search, category))
  return (
    <>
      <div class="row" role="search">
        <input
          type="search"
          aria-label="Search models"
          placeholder="Search by name"
          class="search"
          value={search}
          onInput={(event) => filter({ q: event.currentTarget.value })}
        />
        <select
          aria-label="Category"
          class="choice"
          value={category}
          onChange={(event) => filter({ category: event.currentTarget.value })}
        >
          <option value="">All categories</option>
          {Object.entries(categoryNames).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
        <Segments
          label="View"
          value={view === 'table' ? 'table' : 'cards'}
          options={[
            ['cards', 'Cards'],
            ['table', 'Table'],
          ]}
          choose={(next) => filter({ view: next })}
        />
        <span class="soft small" role="status">
          {shown.length === models.length
            ? `${count(shown.length)} models`
            : `${count(shown.length)} of ${count(models.length)}`}
        </span>
      </div>
      {shown.length === 0 ? (
        <Empty title={models.length === 0 ? 'There are no models yet' : 'No model fits'}>
          {models.length === 0 ? 'The operator adds them to the catalog.' : 'Try another word or category.'}
        </Empty>
      ) : view === 'table' ? (
        <ModelTable models={shown} loads={loads ?? new Map()} />
      ) : (
        <div class="cards">
          {shown.map((model) => (
            <ModelCard key={model.id} model={model} load={loads && loadText(loads.get(model.id))} />
          ))}
        </div>
      )}
    </>
  )
}

function fits(model: Model, search: string, category: string): boolean {
  const words = search.toLowerCase().split(/\s+/)
  const text = `${model.name} ${model.id}`.toLowerCase()
  return (
    words.every((word) => text.includes(word)) &&
    (category === '' || model.model_categories.includes(category as Category))
  )
}

export function Availability({ model }: { model: Model }) {
  const [health, text] = availabilityOf(model)
  return <State is={health}>{text}</State>
}

function ModelCard({ model, load }: { model: Model; load: string | undefined }) {
  return (
    <article class="card">
      <div class="stack tight">
        <div class="row apart top">
          <h2>
            <a href={modelPath(model.id)}>{model.name}</a>
          </h2>
          <Availability model={model} />
        </div>
        <code class="soft wrap">{model.id}</code>
        <div class="row chips">
          {model.model_categories.map((it) => (
            <span key={it} class="chip accent">
              {categoryNames[it]}
            </span>
          ))}
          <span class="chip">{contextOf(model)}</span>
          {model.modes.includes('dedicated') ? <span class="chip">dedicated</span> : null}
        </div>
      </div>
      <dl class="prices">
        {pricesOf(model).map(([name, price, unit]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{price}</dd>
            <dd class="unit">{unit}</dd>
          </div>
        ))}
      </dl>
      {model.unavailable_message !== undefined ? (
        <p class="foot small soft wrap">{model.unavailable_message}</p>
      ) : load === undefined ? null : (
        <p class="foot small soft">{load}</p>
      )}
    </article>
  )
}

function loadText(load: Load | undefined): string {
  if (!load) return 'No load yet'
  const { in_flight_requests: running, max_concurrent_requests: most, queue_depth: waiting, wait_ms_p95: wait } = load
  if (running === 0 && waiting === 0 && wait === null) return 'Idle'
  const waited = wait === null ? '' : ` · waits ${milliseconds(wait)}`
  return `${count(running)} of ${count(most)} in flight · ${count(waiting)} waiting${waited}`
}

const waitText = (load: Load | undefined): string =>
  load === undefined || load.wait_ms_p95 === null ? '–' : milliseconds(load.wait_ms_p95)

function ModelTable({ models, loads }: { models: readonly Model[]; loads: Loads }) {
  const price = (model: Model, name: string): string => pricesOf(model).find(([it]) => it === name)?.[1] ?? '–'
  return (
    <Table
      caption="Models"
      rows={models}
      keyOf={({ id }) => id}
      columns={[
        {
          title: 'Model',
          cell: (model) => (
            <>
              <a href={modelPath(model.id)}>{model.name}</a>
              <br />
              <code class="soft small wrap">{model.id}</code>
            </>
          ),
        },
        { title: 'State', cell: (model) => <Availability model={model} /> },
        { title: 'Context', isNumber: true, cell: ({ context_length: length }) => count(length) },
        { title: 'Input / 1M', isNumber: true, cell: (model) => price(model, 'Input') },
        { title: 'Cached / 1M', isNumber: true, cell: (model) => price(model, 'Cached') },
        { title: 'Output / 1M', isNumber: true, cell: (model) => price(model, 'Output') },
        { title: '/ image', isNumber: true, cell: (model) => price(model, 'Image') },
        { title: '/ minute', isNumber: true, cell: (model) => price(model, 'Audio') },
        { title: 'In flight', isNumber: true, cell: ({ id }) => loads.get(id)?.in_flight_requests ?? '–' },
        { title: 'Waiting', isNumber: true, cell: ({ id }) => loads.get(id)?.queue_depth ?? '–' },
        { title: 'Wait', isNumber: true, cell: ({ id }) => waitText(loads.get(id)) },
      ]}
    />
  )
}
