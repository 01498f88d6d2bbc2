import {
  adapterKinds,
  type AdapterAnswer,
  type AdapterFields,
  type AdapterKind,
  type AdapterLoading,
  type AdapterStep,
  type EngineKind,
} from '../../catalog/model.ts'
import { asList, asRecord } from './reading.ts'

/** Another process of the service, or this one before a restart, has loaded it. Its name contains its source. */
const THERE_ALREADY = /already (been loaded|exists|loaded)/

/** Needs `--enable-lora`; vLLM also VLLM_ALLOW_RUNTIME_LORA_UPDATING=True. */
const byName = (path: string): Pick<AdapterLoading, 'request'> => ({
  request: ({ name, source }) => ({ method: 'POST', path, body: { lora_name: name, lora_path: source } }),
})

function stepOf({ status, body }: AdapterAnswer, fields: AdapterFields): AdapterStep {
  if (status < 300 || THERE_ALREADY.test(body)) return { kind: 'loaded', fields }
  return failed({ status, body })
}

function failed({ status, body }: AdapterAnswer): AdapterStep {
  return { kind: 'failed', reason: `status ${status}: ${body.slice(0, 500)}` }
}

const loadings: Readonly<Record<AdapterKind, AdapterLoading>> = {
  // The adapter is a model of its own: calls name it in `model`.
  vllm: {
    ...byName('/load_lora_adapter'),
    read: (_, answer) => stepOf(answer, {}),
    isMissing: ({ status, body }) => status === 404 && /does not exist/.test(body),
  },
  sglang: {
    ...byName('//load_lora_adapter'),
    read: ({ name }, answer) => stepOf(answer, { lora_path: name }),
    isMissing: ({ status, body }) => status === 400 && /LoRA adapter.{0,40}(never been|not) loaded/i.test(body),
  },
  // It has loaded the files of its command line. A call names those that apply; the others have the common scale.
  llamacpp: {
    request: () => ({ method: 'GET', path: '//lora-adapters' }),
    read({ source }, answer) {
      if (answer.status !== 200) return failed(answer)
      const listed = asList(jsonIn(answer.body))?.map(asRecord) ?? []
      const found = listed.find(({ path }) => path === source)
      if (found === undefined) {
        const reason = `the server does not list it; start it with --lora ${source} --lora-init-without-apply`
        return { kind: 'failed', reason }
      }
      const fields = { lora: [{ id: found['id'], scale: 1 }] }
      if (listed.every(({ scale }) => scale === 0)) return { kind: 'loaded', fields }
      // Otherwise the base model would have it, too.
      const body = listed.map(({ id }) => ({ id, scale: 0 }))
      return { kind: 'loaded', fields, first: { method: 'POST', path: '//lora-adapters', body } }
    },
    isMissing: () => false,
  },
}

/** undefined if servers of this kind take none. */
export function adapterLoading(kind: EngineKind): AdapterLoading | undefined {
  return isAdapterKind(kind) ? loadings[kind] : undefined
}

function isAdapterKind(kind: EngineKind): kind is AdapterKind {
  return (adapterKinds as readonly EngineKind[]).includes(kind)
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
