import { createWriteStream, openAsBlob } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, FormData, request } from 'undici'
import { CommandFailed, configOf, parseFlags, UsageError, type Command, type Flags } from '../../cli/command.ts'
import { borrowKey, findService } from '../../operate/running-service.ts'

const WORKSPACE = 'default'
const ENDPOINT = '/v1/chat/completions'
const POLL_MS = 1000

const actions = {
  submit: { argument: 'FILE', run: submit },
  status: { argument: 'ID', run: status },
  results: { argument: 'ID', run: results },
  cancel: { argument: 'ID', run: cancel },
} as const

export const batch: Command = {
  summary: 'submit a file of requests, follow it and fetch the results',
  help: `weir batch submit FILE [--endpoint PATH] [--wait]
weir batch status ID [--wait]
weir batch results ID [--output FILE] [--errors]
weir batch cancel ID

Runs the requests in a JSONL file on free places of the models, within 24 hours.
Each line is {"custom_id", "method": "POST", "url", "body"}. "submit" prints the
id of the batch. "results" prints its answers, one in each line.

  --endpoint PATH   the url of all lines (default: ${ENDPOINT})
  --wait            wait until the batch has ended, and show its progress
  --output FILE     write the results to a file
  --errors          the lines that failed, instead of the answers
  --workspace W     whose batch it is, at the service on this machine
                    (default: ${WORKSPACE})
  --url URL         another service, such as https://weir.example.com
  --key KEY         an API key of that service`,
  async run(args) {
    const options = { endpoint: 'string', output: 'string', workspace: 'string', url: 'string', key: 'string' } as const
    const flags = parseFlags(args, { ...options, wait: 'boolean', errors: 'boolean' }, 2)
    const [name = '', argument] = flags.positionals
    const action = Object.hasOwn(actions, name) ? actions[name as keyof typeof actions] : undefined
    if (!action) throw new UsageError(`there is no action "${name}"; use submit, status, results or cancel`)
    if (argument === undefined) throw new UsageError(`name it: weir batch ${name} ${action.argument}`)
    await withService(flags, (service) => action.run(service, flags, argument))
  },
}

/** Sends a request with the key. Throws what the service refuses it with. */
type Service = (path: string, sent?: Sent) => Promise<Answer>

type Answer = Awaited<ReturnType<typeof request>>['body']

interface Sent {
  readonly method: 'POST' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | FormData
}

interface BatchView {
  readonly id: string
  readonly status: string
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number }
  readonly paused: { readonly message: string } | null
  readonly errors: {
    readonly count: number
    readonly data: readonly { readonly line: number | null; readonly param: string | null; readonly message: string }[]
  } | null
  readonly output_file_id: string | null
  readonly error_file_id: string | null
}

async function withService(flags: Flags, work: (service: Service) => Promise<void>): Promise<void> {
  const [url, key] = [flags.text('url'), flags.text('key')]
  if ((url === undefined) !== (key === undefined)) throw new UsageError('give --url and --key together')
  if (url !== undefined && key !== undefined) return work(serviceAt(url, key, new Agent()))
  const { dataDir } = configOf(flags)
  const running = findService(dataDir)
  if (!running)
    throw new UsageError(`no service is running on ${dataDir}; name one with --data, or with --url and --key`)
  const lent = await borrowKey(dataDir, flags.text('workspace') ?? WORKSPACE)
  if (!lent) throw new CommandFailed('the service has just stopped')
  if ('error' in lent) throw new CommandFailed(`${lent.error} Choose another one with --workspace.`)
  try {
    // The service is on this machine, but its certificate is for its public name.
    await work(serviceAt(running.url, lent.key, new Agent({ connect: { rejectUnauthorized: false } })))
  } finally {
    await lent.end()
  }
}

function serviceAt(url: string, key: string, dispatcher: Agent): Service {
  return async (path, sent) => {
    const { statusCode, body } = await request(`${url.replace(/\/$/, '')}/api/v1${path}`, {
      ...sent,
      dispatcher,
      headers: { ...sent?.headers, authorization: `Bearer ${key}` },
    }).catch((error: Error) => {
      throw new CommandFailed(`${url} does not answer: ${error.message}`)
    })
    if (statusCode < 400) return body
    const { error } = (await body.json().catch(() => ({}))) as { error?: { message: string } }
    throw new CommandFailed(error?.message ?? `the service answered with status ${statusCode}`)
  }
}

async function submit(service: Service, flags: Flags, file: string): Promise<void> {
  if (!(await stat(file)).isFile()) throw new CommandFailed(`${file} is not a file`)
  const form = new FormData()
  form.set('purpose', 'batch')
  // The file is read while it is sent.
  form.set('file', await openAsBlob(file), basename(file))
  const uploaded = (await (await service('/files', { method: 'POST', body: form })).json()) as { id: string }
  const created = await service('/batches', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      input_file_id: uploaded.id,
      endpoint: flags.text('endpoint') ?? ENDPOINT,
      completion_window: '24h',
    }),
  }).catch(async (error: unknown) => {
    await service(`/files/${uploaded.id}`, { method: 'DELETE' }).catch(() => {})
    throw error
  })
  await show(service, flags, (await created.json()) as BatchView)
}

const batchOf = async (service: Service, id: string): Promise<BatchView> =>
  (await (await service(`/batches/${encodeURIComponent(id)}`)).json()) as BatchView

async function status(service: Service, flags: Flags, id: string): Promise<void> {
  await show(service, flags, await batchOf(service, id))
}

async function cancel(service: Service, flags: Flags, id: string): Promise<void> {
  const response = await service(`/batches/${encodeURIComponent(id)}/cancel`, { method: 'POST' })
  await show(service, flags, (await response.json()) as BatchView)
}

const isOver = ({ status: state }: BatchView): boolean =>
  ['completed', 'failed', 'expired', 'cancelled'].includes(state)

/** With --wait, once it has ended. */
async function show(service: Service, flags: Flags, shown: BatchView): Promise<void> {
  let current = shown
  let last = ''
  while (flags.values['wait'] && !isOver(current)) {
    const line = stateText(current)
    if (line !== last) process.stderr.write(`${line}\n`)
    last = line
    await sleep(POLL_MS)
    current = await batchOf(service, shown.id)
  }
  flags.print(current, () => [current.id, stateText(current), ...mistakes(current)].join('\n'))
  if (flags.values['wait'] && current.status !== 'completed') {
    throw new CommandFailed(`the batch is ${current.status}`)
  }
}

function stateText({ status: state, request_counts: counts, paused }: BatchView): string {
  const { total, completed, failed } = counts
  const pause = paused ? `; paused: ${paused.message}` : ''
  return `${state}: ${completed} of ${total} lines completed, ${failed} failed${pause}`
}

function mistakes({ errors }: BatchView): readonly string[] {
  if (!errors) return []
  const listed = errors.data.map(({ line, param, message }) => {
    const place = line === null ? '' : `line ${line}: `
    return `${place}${param === null ? '' : `${param}: `}${message}`
  })
  const more = errors.count - listed.length
  return more > 0 ? [...listed, `and ${more} more`] : listed
}

async function results(service: Service, flags: Flags, id: string): Promise<void> {
  const found = await batchOf(service, id)
  const wanted = flags.values['errors'] ? found.error_file_id : found.output_file_id
  if (wanted === null) {
    const reason = isOver(found) ? 'has no such lines' : 'has not ended'
    throw new CommandFailed(`the batch ${reason}: ${stateText(found)}`)
  }
  const content = await service(`/files/${wanted}/content`)
  const output = flags.text('output')
  const into = output === undefined ? process.stdout : createWriteStream(output)
  await pipeline(content, into, { end: output !== undefined })
}
