import { useLocation } from 'preact-iso/router'
import { useData } from '../../shared/data.ts'
import { Empty, PageHead, Ready } from '../../shared/parts.tsx'
import { api, type Model } from '../api.ts'
import { Audio } from '../playground/audio.tsx'
import { Chat } from '../playground/chat/chat.tsx'
import { Embeddings } from '../playground/embeddings.tsx'
import { Images } from '../playground/images.tsx'
import { ModelChoice } from '../playground/model-choice.tsx'
import { Rerank } from '../playground/rerank.tsx'

/**
 * Try a model: the page fits its category. The address has the model, those beside it, and the conversation, so that a
 * reload and the browser's back button lead to the same.
 */
export function PlaygroundPage() {
  const loaded = useData(async (signal) => (await api('models', { signal })).data)
  return (
    <>
      <PageHead title="Playground" about="Requests from here are real: they wait in the queue, and they are billed." />
      <Ready of={loaded}>
        {([first, ...others]) =>
          first === undefined ? (
            <Empty title="No model is ready">
              <a href="/console/models">See which are being downloaded</a>
            </Empty>
          ) : (
            <Playground models={[first, ...others]} />
          )
        }
      </Ready>
    </>
  )
}

interface Place {
  readonly model: string
  readonly beside: readonly string[]
  readonly chat: string | undefined
}

function Playground({ models }: { models: readonly [Model, ...Model[]] }) {
  const { query, route } = useLocation()
  const find = (id: string | undefined): Model | undefined => models.find((model) => model.id === id)
  const model = find(query['model']) ?? models[0]
  const beside = isChat(model) ? (query['beside'] ?? '').split(',').flatMap((id) => find(id) ?? []) : []
  const place: Place = { model: model.id, beside: beside.map(({ id }) => id), chat: query['chat'] }
  const go = (changes: Partial<Place>, replaces = false): void => route(addressOf({ ...place, ...changes }), replaces)
  return (
    <>
      <ModelChoice
        models={models}
        chosen={[model, ...beside]}
        isBeside={isChat}
        choose={([first = model.id, ...others]) => go({ model: first, beside: others })}
      />
      {isChat(model) ? (
        <Chat
          models={[model, ...beside.filter(isChat)]}
          nameOf={(id) => find(id)?.name ?? id}
          id={place.chat}
          open={(chat, replaces) => go({ chat }, replaces)}
          firstPrompt={query['prompt']}
        />
      ) : (
        <Try key={model.id} model={model} />
      )}
    </>
  )
}

function addressOf({ model, beside, chat }: Place): string {
  const query = new URLSearchParams({ model })
  if (beside.length > 0) query.set('beside', beside.join(','))
  if (chat !== undefined) query.set('chat', chat)
  return `/console/playground?${query}`
}

const isChat = ({ endpoints }: Model): boolean => endpoints.includes('/chat/completions')

function Try({ model }: { model: Model }) {
  switch (model.endpoints[0]) {
    case '/embeddings':
      return <Embeddings model={model} />
    case '/rerank':
    case '/reranking':
      return <Rerank model={model} />
    case '/images/generations':
      return <Images model={model} />
    default:
      return <Audio model={model} />
  }
}
