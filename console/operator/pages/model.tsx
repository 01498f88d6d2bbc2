import { useRoute } from 'preact-iso/router'
import { useData } from '../../shared/data.ts'
import { count, milliseconds, price } from '../../shared/format.ts'
import { ModelHistory } from '../../shared/model-history.tsx'
import { Facts, PageHead, Ready } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { lanePath, modelPath } from '../paths.ts'

/** One model over all workspaces: its price, its limits, and its requests, times and failures. */
export function ModelPage() {
  const id = useRoute().params['model'] ?? ''
  const loaded = useData(
    async (signal) => {
      const [model, { data }] = await Promise.all([
        api('getModel', { path: { model: id }, signal }),
        api('listEngines', { signal }),
      ])
      return { model, lanes: data.filter((it) => it.model === id) }
    },
    [id],
  )
  return (
    <>
      <PageHead title={id} about="All workspaces. A line is for one of the six workspaces that it cost most." />
      <Ready of={loaded}>
        {({ model, lanes }) => (
          <div class="charts">
            <section class="panel stack tight" aria-labelledby="catalog">
              <h2 id="catalog">In the catalog</h2>
              <Facts
                of={[
                  ['Name', model.name],
                  ['Categories', model.categories.join(', ')],
                  ['Context', `${count(model.context_length)} tokens`],
                  ['Longest answer', `${count(model.max_completion_tokens)} tokens`],
                  ...prices(model.pricing),
                ]}
              />
            </section>
            {lanes.map(({ lane }) => (
              <Lane key={lane} lane={lane} model={id} />
            ))}
          </div>
        )}
      </Ready>
      <ModelHistory
        model={id}
        path={modelPath(id)}
        kind="workspace"
        nameOf={(name) => name}
        load={async ({ from, to }, signal) => {
          const query = { from, to, model: id }
          const [report, latency] = await Promise.all([
            api('usageReport', { query: { ...query, group_by: 'workspace' }, signal }),
            api('latencyReport', { query, signal }),
          ])
          return { report, latency }
        }}
      />
    </>
  )
}

/** List prices, without GST. A workspace may have prices of its own. */
function prices(pricing: Answer<'getModel'>['pricing']): readonly (readonly [string, string])[] {
  const units = [
    ['Input', pricing.input_per_million, '/ 1M tokens'],
    ['Cached input', pricing.cached_input_per_million, '/ 1M tokens'],
    ['Output', pricing.output_per_million, '/ 1M tokens'],
    ['Image', pricing.per_image, '/ image'],
    ['Audio', pricing.per_audio_minute, '/ minute'],
  ] as const
  return units.flatMap(([name, amount, unit]) =>
    amount === undefined || Number(amount) === 0 ? [] : [[name, `${price(amount)} ${unit}`] as const],
  )
}

function Lane({ lane, model }: { lane: string; model: string }) {
  const loaded = useData((signal) => api('getLaneLimits', { path: { lane }, signal }), [lane])
  return (
    <section class="panel stack tight" aria-label={lane}>
      <div class="row apart">
        <h2>{lane === model ? 'Queue' : lane}</h2>
        <a href={lanePath(lane)}>Live</a>
      </div>
      <Ready of={loaded}>
        {({ limits }) => (
          <Facts
            of={[
              ['In flight at most', `${count(limits.max_concurrent_requests)} requests`],
              ['Token budget', `${count(limits.token_budget)} tokens`],
              ['Waiting at most', `${count(limits.max_queue_depth)} requests`],
              ['Waits up to', milliseconds(limits.max_wait_ms)],
            ]}
          />
        )}
      </Ready>
    </section>
  )
}
