import type { Adapter, AdapterAnswer, AdapterFields, AdapterLoading, AdapterRequest } from '../catalog/model.ts'
import type { EngineAddress } from './address.ts'

/** Loads adapters into the servers of one engine before the first call that needs them. */
export interface AdapterLoads {
  /** The fields that a call has in addition. Rejects with the reason, for the operator. */
  load(address: EngineAddress, adapter: Adapter): Promise<AdapterFields>
  /** The server may have lost them: it was down, or broke off a connection. */
  forget(address: EngineAddress): void
  /** Whether a refused call has to load its adapter again. */
  isMissing(answer: AdapterAnswer): boolean
}

/** The server may download it first. */
const LOAD_MS = 600_000
const ANSWER_BYTES_MAX = 1_048_576
/** If a catalog changes more often than this, servers are asked again. */
const MAX_REMEMBERED = 1000

interface Server {
  readonly loaded: Map<string, Promise<AdapterFields>>
  /** The latest load. A server loads one at a time. */
  last: Promise<unknown>
}

/** `lines` are the headers of every request. */
export function adapterLoads(loading: AdapterLoading, lines: string): AdapterLoads {
  const servers = new Map<EngineAddress, Server>()

  function serverOf(address: EngineAddress): Server {
    const known = servers.get(address) ?? { loaded: new Map(), last: Promise.resolve() }
    servers.set(address, known)
    return known
  }

  async function ask(address: EngineAddress, { method, path, body }: AdapterRequest): Promise<AdapterAnswer> {
    const json = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const all = json ? `${lines}content-type: application/json\r\n` : lines
    return address.query(path, all, { method, body: json, timeoutMs: LOAD_MS, maxBytes: ANSWER_BYTES_MAX })
  }

  async function loadNow(address: EngineAddress, adapter: Adapter): Promise<AdapterFields> {
    const step = loading.read(adapter, await ask(address, loading.request(adapter)))
    if (step.kind === 'failed') throw new Error(step.reason)
    if (step.first) {
      const { status, body } = await ask(address, step.first)
      if (status >= 300) throw new Error(`status ${status}: ${body.slice(0, 500)}`)
    }
    return step.fields
  }

  return {
    load(address, adapter) {
      const server = serverOf(address)
      const { loaded } = server
      const known = loaded.get(adapter.name)
      if (known) return known
      if (loaded.size >= MAX_REMEMBERED) loaded.clear()
      const load = server.last.then(() => loadNow(address, adapter))
      loaded.set(adapter.name, load)
      // After a failure, the next call tries again.
      server.last = load.catch(() => loaded.get(adapter.name) === load && loaded.delete(adapter.name))
      return load
    },
    forget: (address) => serverOf(address).loaded.clear(),
    isMissing: loading.isMissing,
  }
}

/** The body of a call, which is a JSON object with at least one field, with these in addition. */
export function withFields(body: Buffer, fields: AdapterFields): Buffer {
  const added = JSON.stringify(fields)
  return added === '{}' ? body : Buffer.concat([Buffer.from(`${added.slice(0, -1)},`), body.subarray(1)])
}
