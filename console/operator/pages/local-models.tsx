import { useEffect, useState } from 'preact/hooks'
import { bytesText } from '../../../src/shared/bytes-text.ts'
import { Confirm, Problem, useAction } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { count, milliseconds, percent } from '../../shared/format.ts'
import { Empty, Figures, PageHead, Ready, State, type Health } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { may } from '../session.tsx'
import { modelPath } from '../paths.ts'

/** The models that Weir can run on this machine: their downloads, their files, and whether they fit its memory. */

type Listed = Answer<'listLocalModels'>
type LocalModel = Listed['data'][number]
type Machine = Listed['machine']

const words: Readonly<Record<LocalModel['state'], readonly [Health, string]>> = {
  ready: ['good', 'Ready'],
  downloading: ['warn', 'Downloading'],
  paused: ['idle', 'Paused'],
  failed: ['bad', 'Failed'],
  not_downloaded: ['idle', 'Not downloaded'],
}

/** How often the page reads the figures, while something is downloaded and otherwise. */
const FAST_MS = 1000
const SLOW_MS = 10_000

export function LocalModelsPage() {
  const loaded = useData((signal) => api('listLocalModels', { signal }))
  const [asked, setAsked] = useState<{ readonly what: 'remove' | 'download'; readonly model: LocalModel }>()
  const [notice, setNotice] = useState<string>()
  const action = useAction()
  const isArriving = loaded.state === 'ready' && loaded.data.data.some(({ state }) => state === 'downloading')
  useEffect(() => {
    const timer = setInterval(loaded.reload, isArriving ? FAST_MS : SLOW_MS)
    return () => clearInterval(timer)
  }, [isArriving])

  async function order(what: 'pullModel' | 'pauseModel', { model }: LocalModel): Promise<void> {
    setNotice(undefined)
    await api(what, { body: { model } })
    loaded.reload()
  }
  async function remove({ model }: LocalModel): Promise<void> {
    const { freed_bytes: freed } = await api('removeModel', { body: { model } })
    setNotice(`${model} has been removed. ${bytesText(freed)} of the disk are free again.`)
    loaded.reload()
  }
  const download = (model: LocalModel): void => {
    if (model.memory.fits === 'no') setAsked({ what: 'download', model })
    else void action.run(() => order('pullModel', model))
  }

  return (
    <>
      <PageHead
        title="Models"
        about="What Weir can run by itself. Callers can call those in the catalog. Models on inference servers are on the pages Engines and Catalog."
      />
      <div role="status">{notice === undefined ? null : <div class="notice">{notice}</div>}</div>
      <Problem of={action} />
      <Ready of={loaded}>
        {({ data, machine }) =>
          data.length === 0 ? (
            <Empty title="This installation runs no models">
              It is without packages/local-models. Use the image built with --target embedded, or a clone of the
              repository.
            </Empty>
          ) : (
            <>
              <MachineFigures of={machine} />
              <section class="panel local-models" aria-label={`Models for ${machine.host}`}>
                {data.map((model) => (
                  <article key={model.model} aria-label={model.model}>
                    <Name of={model} />
                    <Download of={model} />
                    <Memory of={model} />
                    <Actions
                      of={model}
                      isRunning={action.isRunning}
                      download={() => download(model)}
                      pause={() => void action.run(() => order('pauseModel', model))}
                      remove={() => setAsked({ what: 'remove', model })}
                    />
                  </article>
                ))}
              </section>
            </>
          )
        }
      </Ready>
      {asked?.what === 'remove' && loaded.state === 'ready' ? (
        <RemoveDialog
          of={asked.model}
          host={loaded.data.machine.host}
          remove={() => remove(asked.model)}
          close={() => setAsked(undefined)}
        />
      ) : null}
      {asked?.what === 'download' ? (
        <Confirm
          title={`Download ${asked.model.model}?`}
          verb="Download anyway"
          act={() => order('pullModel', asked.model)}
          close={() => setAsked(undefined)}
        >
          <p>
            It needs about {bytesText(asked.model.memory.needed_bytes)} of memory, which is more than this machine has
            for models. It would run alone, and the machine may become very slow.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}

/** Which machine the page is about, and what is left of it. */
function MachineFigures({ of: { host, directory, disk, memory, runtime } }: { of: Machine }) {
  const used = memory.loaded.reduce((sum, { bytes }) => sum + bytes, 0)
  return (
    <>
      <p class="soft wrap">
        On <strong>{host}</strong>, in <code class="small">{directory}</code>. Replicas on other machines have files of
        their own: use <code class="small">weir models</code> there.
      </p>
      <Figures
        of={[
          [
            'Disk',
            `${bytesText(disk.free_bytes)} free`,
            `of ${bytesText(disk.size_bytes)}; downloads leave ${bytesText(disk.reserved_bytes)} for the ledger`,
          ],
          [
            'Memory for models',
            bytesText(memory.budget_bytes),
            `of ${bytesText(memory.machine_bytes)}, for each of the two runtimes`,
          ],
          [
            'Loaded now',
            memory.loaded.length === 0 ? 'nothing' : bytesText(used),
            memory.loaded.length === 0
              ? 'a model loads with its first request'
              : memory.loaded.map(({ model }) => model).join(', '),
          ],
        ]}
      />
      {runtime.state === 'ready' ? null : (
        <div class="notice">
          <strong>
            {runtime.state === 'downloading'
              ? `What runs the models is being downloaded: ${bytesText(runtime.received_bytes)} of ${bytesText(runtime.bytes)}`
              : 'What runs the models is not downloaded yet'}
          </strong>
          The first download of a model begins with it ({bytesText(runtime.bytes)}).
        </div>
      )}
    </>
  )
}

function Name({ of: { model, name, categories, bytes, catalog_models: listed } }: { of: LocalModel }) {
  return (
    <div>
      <h2>{name}</h2>
      <div class="small soft wrap">
        <code>{model}</code>
      </div>
      <div class="small soft">
        {categories.join(', ')}, {bytesText(bytes)}
        {listed.length === 0 ? ', not in the catalog' : null}
        {listed.map((id) => (
          <div key={id}>
            <a href={modelPath(id)} aria-label={`Requests and times of ${id}`}>
              Requests and times
            </a>
          </div>
        ))}
      </div>
    </div>
  )
}

function Download({ of: it }: { of: LocalModel }) {
  const [health, word] = words[it.state]
  const share = it.bytes === 0 ? 0 : Math.min(1, it.received_bytes / it.bytes)
  const isPartial = it.state === 'downloading' || it.state === 'paused'
  return (
    <div class="download">
      <State is={health}>{isPartial ? `${word}, ${percent(share)}` : word}</State>
      {isPartial ? <progress value={share} aria-label={`Downloaded of ${it.model}`} /> : null}
      {it.state === 'downloading' ? <div class="small soft">{pace(it)}</div> : null}
      {it.state === 'paused' ? <div class="small soft">{amounts(it)} are kept</div> : null}
      {it.state === 'failed' ? (
        <details class="small">
          <summary>Tried again by itself. Reason</summary>
          <div class="wrap">{it.problem}</div>
        </details>
      ) : null}
    </div>
  )
}

const amounts = ({ received_bytes: received, bytes }: LocalModel): string =>
  `${bytesText(received)} of ${bytesText(bytes)}`

function pace(it: LocalModel): string {
  if (it.waiting) return 'waits for other downloads'
  if (it.bytes_per_second === 0) return amounts(it)
  const left = ((it.bytes - it.received_bytes) * 1000) / it.bytes_per_second
  return `${amounts(it)}, ${bytesText(it.bytes_per_second)}/s, ${milliseconds(Math.max(1000, Math.round(left / 1000) * 1000))} left`
}

const fitting = {
  now: ['good', 'Fits'],
  after_unloading: ['warn', 'Fits after others leave'],
  no: ['bad', 'Too large'],
} as const

function Memory({ of: { memory } }: { of: LocalModel }) {
  const [health, word] = memory.loaded ? (['good', 'Loaded'] as const) : fitting[memory.fits]
  return (
    <div>
      <State is={health}>{word}</State>
      <div class="small soft">needs {bytesText(memory.needed_bytes)}</div>
    </div>
  )
}

function Actions({
  of: { model, state, shipped, received_bytes: received },
  isRunning,
  download,
  pause,
  remove,
}: {
  of: LocalModel
  isRunning: boolean
  download: () => void
  pause: () => void
  remove: () => void
}) {
  if (shipped && state === 'ready') return <div class="small soft">Part of Weir</div>
  if (!may('pullModel')) return null
  const first = {
    ready: undefined,
    downloading: { title: 'Pause', act: pause },
    paused: { title: 'Resume', act: download },
    failed: { title: 'Try again', act: download },
    not_downloaded: { title: 'Download', act: download },
  }[state]
  return (
    <div class="row">
      {first ? (
        <button type="button" disabled={isRunning} aria-label={`${first.title} ${model}`} onClick={first.act}>
          {first.title}
        </button>
      ) : null}
      {received > 0 && !shipped ? (
        <button type="button" class="danger" aria-label={`Remove ${model}`} onClick={remove}>
          Remove
        </button>
      ) : null}
    </div>
  )
}

function RemoveDialog({
  of: { model, received_bytes: received, shared_with: shared, catalog_models: listed, requests },
  host,
  remove,
  close,
}: {
  of: LocalModel
  host: string
  remove: () => Promise<void>
  close: () => void
}) {
  return (
    <Confirm title={`Remove ${model}?`} verb={`Remove ${bytesText(received)}`} act={remove} close={close}>
      <p>
        Its files leave the disk of {host}: {bytesText(received)}. It is not downloaded again, also not by a restart,
        until you download it here.
      </p>
      {shared.length === 0 ? null : <p>These models have the same files and go with it: {shared.join(', ')}.</p>}
      {listed.length === 0 ? null : <p>Requests to {listed.join(', ')} are then refused with model_not_configured.</p>}
      {requests === 0 ? null : (
        <div class="notice warn">
          <strong>It is in use</strong>
          {count(requests)} {requests === 1 ? 'request runs or waits' : 'requests run or wait'}. It can be removed when
          they have ended.
        </div>
      )}
    </Confirm>
  )
}
