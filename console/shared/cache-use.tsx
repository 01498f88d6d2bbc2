import { useData } from './data.ts'
import { count, percent, time } from './format.ts'
import { Empty, Ready, Table, type Column } from './parts.tsx'

/** How much of the input was in the caches of engines, and the likely causes where it was not. */

export interface CacheUse {
  readonly key: string
  readonly model: string
  readonly requests: number
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly misses: Readonly<Record<'first_use' | 'prefix_changed' | 'evicted' | 'moved', number>>
  readonly latest_change: {
    readonly at: string
    readonly message: number
    readonly after_character: number
  } | null
}

const SHOWN = 20
const causes = [
  ['prefix_changed', 'prompt changed near its beginning'],
  ['first_use', 'first use'],
  ['evicted', 'evicted by the engine'],
  ['moved', 'moved to another address'],
] as const

export function CacheSection<Use extends CacheUse>({
  load,
  columns,
}: {
  load: (signal: AbortSignal) => Promise<{ readonly data: readonly Use[] }>
  /** Who used it. */
  columns: readonly Column<Use>[]
}) {
  const loaded = useData(load)
  return (
    <section class="stack" aria-labelledby="cache">
      <h2 id="cache">Cache hits</h2>
      <p class="soft">
        What engines had read before is quicker and often cheaper. Since the service started; the {SHOWN} with most
        input that was not cached.
      </p>
      <Ready of={loaded}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No engine has reported how much was cached">
              Engines with a prefix cache report it with an answer.
            </Empty>
          ) : (
            <Table
              caption="Cache hits"
              rows={data.toSorted((one, other) => uncached(other) - uncached(one)).slice(0, SHOWN)}
              keyOf={(it) => `${it.key} ${it.model}`}
              columns={[
                ...columns,
                { title: 'Model', cell: ({ model }) => <span class="name-cell">{model}</span> },
                { title: 'Requests', isNumber: true, cell: ({ requests }) => count(requests) },
                { title: 'Input', isNumber: true, cell: (it) => count(it.input_tokens) },
                {
                  title: 'Cached',
                  isNumber: true,
                  cell: (it) => (it.input_tokens > 0 ? percent(it.cached_input_tokens / it.input_tokens) : '–'),
                },
                { title: 'Likely causes', cell: ({ misses }) => <Causes of={misses} /> },
                { title: 'Latest change', cell: ({ latest_change: change }) => <Change of={change} /> },
              ]}
            />
          )
        }
      </Ready>
    </section>
  )
}

const uncached = (use: CacheUse): number => use.input_tokens - use.cached_input_tokens

function Causes({ of: misses }: { of: CacheUse['misses'] }) {
  const found = causes.filter(([cause]) => misses[cause] > 0)
  if (found.length === 0) return <span class="soft">–</span>
  return (
    <>
      {found.map(([cause, words]) => (
        <div key={cause}>
          {count(misses[cause])} × {words}
        </div>
      ))}
    </>
  )
}

/** So that people can find the exact place in their prompt. */
function Change({ of: change }: { of: CacheUse['latest_change'] }) {
  if (change === null) return <span class="soft">–</span>
  return (
    <>
      {change.message < 0 ? 'In the tools' : `In message ${change.message + 1}`}, after character{' '}
      {count(change.after_character)}
      <div class="small soft">{time(change.at)}</div>
    </>
  )
}
