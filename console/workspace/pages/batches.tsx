import { useLocation } from 'preact-iso/router'
import { useState } from 'preact/hooks'
import { Problem, useAction } from '../../shared/action.tsx'
import { BatchTable, batchPath, CancelBatch, OneBatch, type BatchDetail } from '../../shared/batch.tsx'
import { addressOf, Failure, send } from '../../shared/client.ts'
import { Icon } from '../../shared/icon.tsx'
import { downloadIcon, uploadIcon } from '../../shared/icons.ts'
import { Code, PageHead } from '../../shared/parts.tsx'
import { operations } from '../../generated/public-api.ts'
import { api, type Answer } from '../api.ts'

/** The batches of the workspace, and where a file becomes one. */
export function BatchesPage() {
  return (
    <>
      <PageHead
        title="Batches"
        about="Many requests from one file, answered within 24 hours on capacity that is idle."
      />
      <NewBatch />
      <BatchTable load={(query, signal) => api('batches', { query, signal })}>
        <p>Drop a file above, or submit one from a terminal:</p>
        <Code text="weir batch submit questions.jsonl --wait" label="Submits a batch" />
      </BatchTable>
    </>
  )
}

const EXAMPLE =
  '{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "…", "messages": […]}}'

/** A file that is dropped or chosen is submitted at once. */
function NewBatch() {
  const { route } = useLocation()
  const action = useAction()
  const [isOver, setOver] = useState(false)
  function take(file: File | undefined): void {
    setOver(false)
    if (file) void action.run(async () => route(batchPath(await submit(file))))
  }
  return (
    <section class="stack" aria-label="New batch">
      <label
        class={isOver ? 'drop over' : 'drop'}
        onDragOver={(event) => {
          if (!event.dataTransfer?.types.includes('Files')) return
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault()
          if (!action.isRunning) take(event.dataTransfer?.files[0])
        }}
      >
        <Icon of={uploadIcon} />
        <strong>{action.isRunning ? 'The file is being uploaded …' : 'Drop a JSONL file here, or choose one'}</strong>
        <span>Each line is a request, and all lines have the same url:</span>
        <code class="wrap">{EXAMPLE}</code>
        <input
          type="file"
          class="visually-hidden"
          aria-label="JSONL file"
          accept=".jsonl,.ndjson,application/jsonl"
          disabled={action.isRunning}
          onChange={(event) => {
            take(event.currentTarget.files?.[0])
            // The same file can be chosen again after it was corrected.
            event.currentTarget.value = ''
          }}
        />
      </label>
      <Problem of={action} />
    </section>
  )
}

/** Returns the id of the batch. */
async function submit(file: File): Promise<string> {
  const endpoint = await endpointOf(file)
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', file)
  const [method, path] = operations.uploadFile
  const uploaded = await send(addressOf(path, {}), { method, body: form })
  const { id } = (await uploaded.json()) as Answer<'uploadFile'>
  const body = { input_file_id: id, endpoint, completion_window: '24h' } as const
  try {
    return (await api('createBatch', { body })).id
  } catch (refusal) {
    await api('deleteFile', { path: { id } }).catch(() => {})
    throw refusal
  }
}

/** The service takes no longer line. */
const MAX_LINE_BYTES = 20 * 1024 * 1024

/** The url of the first line that is not blank. The service checks the others. */
async function endpointOf(file: File): Promise<string> {
  const text = await file.slice(0, MAX_LINE_BYTES).text()
  const [first = ''] = text.trimStart().split('\n', 1)
  if (first === '') throw new Failure(400, 'invalid_value', 'The file has no lines.')
  const url = urlIn(first)
  if (url !== undefined) return url
  throw new Failure(
    400,
    'invalid_value',
    'The first line must be a JSON object with the field \'url\', such as "/v1/chat/completions".',
  )
}

function urlIn(line: string): string | undefined {
  try {
    const { url } = JSON.parse(line) as { url?: unknown }
    return typeof url === 'string' ? url : undefined
  } catch {
    return undefined
  }
}

export function BatchPage() {
  return (
    <OneBatch
      load={(id, signal) => api('batch', { path: { id }, signal })}
      actions={(batch, reload) => (
        <>
          <Download of={batch} kind="output" />
          <Download of={batch} kind="error" />
          <CancelBatch of={batch} act={() => api('cancelBatch', { path: { id: batch.id } }).then(reload)} />
        </>
      )}
    />
  )
}

const downloads = { output: 'Download the answers', error: 'Download the errors' } as const

/** The browser saves the file as it arrives. */
function Download({ of: batch, kind }: { of: BatchDetail; kind: keyof typeof downloads }) {
  const file = batch[`${kind}_file_id`]
  if (file === null) return null
  const [, path] = operations.getFileContent
  return (
    <a class="button" href={addressOf(path, { path: { id: file } })} download={`${batch.id}_${kind}.jsonl`}>
      <Icon of={downloadIcon} />
      {downloads[kind]}
    </a>
  )
}
