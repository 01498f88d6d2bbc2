import { useRoute } from 'preact-iso/router'
import { useData } from '../../shared/data.ts'
import { count, milliseconds } from '../../shared/format.ts'
import { ModelHistory } from '../../shared/model-history.tsx'
import { Facts, PageHead, Ready, Table } from '../../shared/parts.tsx'
import { RequestCode } from '../../shared/request-code.tsx'
import { api, type ModelDetail } from '../api.ts'
import { batchPriceOf, categoryNames, contextOf, modelPath, pricesOf } from '../model-facts.ts'
import { firstRequest } from '../samples.ts'
import { session } from '../session.ts'
import { Availability } from './models.tsx'

/** One model: what it takes, what it costs, and how to call it. */
export function ModelPage() {
  const slug = useRoute().params['slug'] ?? ''
  const loaded = useData((signal) => api('modelsSlug', { path: { slug }, signal }), [slug])
  return (
    <>
      {loaded.state === 'ready' ? null : <PageHead title={slug} />}
      <Ready of={loaded}>{(model) => <Model model={model} />}</Ready>
    </>
  )
}

function Model({ model }: { model: ModelDetail }) {
  const { path, body } = firstRequest(model)
  const batchPrice = batchPriceOf(model)
  return (
    <>
      <PageHead title={model.name} about={model.description === '' ? undefined : model.description}>
        <Availability model={model} />
        {model.available ? (
          <a class="button primary" href={`/console/playground?model=${encodeURIComponent(model.id)}`}>
            Try it
          </a>
        ) : null}
      </PageHead>
      {model.unavailable_message === undefined ? null : <div class="notice">{model.unavailable_message}</div>}
      <div class="columns">
        <div class="stack">
          <section class="panel stack" aria-labelledby="about">
            <h2 id="about">About</h2>
            <Facts
              of={[
                ['Id', <code key="id">{model.id}</code>],
                ...(model.aliases.length > 0
                  ? [['Short', <code key="aliases">{model.aliases.join(', ')}</code>] as const]
                  : []),
                ['Categories', model.model_categories.map((it) => categoryNames[it]).join(', ')],
                ['Context', contextOf(model)],
                ['Longest answer', `${count(model.max_completion_tokens)} tokens`],
                [
                  'Rate limit',
                  `${count(session.value?.requests_per_minute ?? 0)} requests a minute, all models together`,
                ],
                ['Modes', model.modes.join(', ') || 'none'],
                ...pricesOf(model).map(([name, price, unit]) => [name, `${price} ${unit}`] as const),
                ...(batchPrice === undefined ? [] : [['Flex and batch', batchPrice] as const]),
              ]}
            />
            {model.pricing.image_prices.length > 0 ? (
              <Table
                caption="Prices by size and quality"
                rows={model.pricing.image_prices}
                keyOf={({ size, quality }) => `${size} ${quality}`}
                columns={[
                  { title: 'Size', cell: ({ size }) => size },
                  { title: 'Quality', cell: ({ quality }) => quality ?? 'any' },
                  { title: 'A$ / image', isNumber: true, cell: (it) => it.per_image },
                ]}
              />
            ) : null}
          </section>
          <section class="panel stack" aria-labelledby="parameters">
            <h2 id="parameters">Parameters</h2>
            <div class="row chips">
              {model.supported_parameters.length === 0 ? <p class="soft">None besides the required ones.</p> : null}
              {model.supported_parameters.map((name) => (
                <code key={name} class="chip">
                  {name}
                </code>
              ))}
            </div>
          </section>
          {model.queue_limits ? (
            <section class="panel stack" aria-labelledby="queue">
              <h2 id="queue">Queue</h2>
              <Facts
                of={[
                  ['In flight at most', `${count(model.queue_limits.max_concurrent_requests)} requests`],
                  ['Token budget', `${count(model.queue_limits.token_budget)} tokens`],
                  ['Waiting at most', `${count(model.queue_limits.max_queue_depth)} requests`],
                  ['Waits up to', milliseconds(model.queue_limits.max_wait_ms)],
                ]}
              />
            </section>
          ) : null}
        </div>
        <div class="stack">
          <section class="panel stack" aria-labelledby="call">
            <h2 id="call">Call it</h2>
            <RequestCode path={path} body={body} />
            <p class="small soft">
              Put a key of your workspace into <code>WEIR_API_KEY</code>. Any SDK for the chat completions format works
              with the base address <code>{location.origin}/api/v1</code>.
            </p>
          </section>
        </div>
      </div>
      <ModelHistory
        model={model.id}
        path={modelPath(model.id)}
        kind="model"
        nameOf={(id) => id}
        load={async ({ from, to }, signal) => {
          const query = { from, to, model: model.id }
          const [report, latency] = await Promise.all([
            api('usageReport', { query, signal }),
            api('latencyReport', { query, signal }),
          ])
          return { report, latency }
        }}
      />
    </>
  )
}
