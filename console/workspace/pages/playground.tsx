import { useLocation } from 'preact-iso'
import { useData } from '../../shared/data.ts'
import { Empty, PageHead, Ready } from '../../shared/parts.tsx'
import { api, type Model } from '../api.ts'
import { categoryNames, type Category } from '../model-facts.ts'
import { Audio } from '../playground/audio.tsx'
import { Chat } from '../playground/chat.tsx'
import { Embeddings } from '../playground/embeddings.tsx'
import { Images } from '../playground/images.tsx'
import { Rerank } from '../playground/rerank.tsx'

/** Try a model: the page fits its category. The model is in the address. */
export function PlaygroundPage() {
  const { query, route } = useLocation()
  const loaded = useData(async (signal) => (await api('models', { signal })).data)
  return (
    <>
      <PageHead title="Playground" about="Requests from here are real: they wait in the queue, and they are billed." />
      <Ready of={loaded}>
        {(models) => {
          const model = models.find(({ id }) => id === query['model']) ?? models[0]
          if (!model) {
            return (
              <Empty title="No model is ready">
                <a href="/console/models">See which are being downloaded</a>
              </Empty>
            )
          }
          return (
            <>
              <label class="model-choice">
                Model
                <select
                  value={model.id}
                  onChange={(event) =>
                    route(`/console/playground?model=${encodeURIComponent(event.currentTarget.value)}`)
                  }
                >
                  {[...byCategory(models)].map(([category, members]) => (
                    <optgroup key={category} label={categoryNames[category]}>
                      {members.map(({ id, name }) => (
                        <option key={id} value={id}>
                          {name}
                        </option>
                      ))}
                    </optgroup>
                  ))}
                </select>
              </label>
              <Try key={model.id} model={model} firstPrompt={query['prompt']} />
            </>
          )
        }}
      </Ready>
    </>
  )
}

function Try({ model, firstPrompt }: { model: Model; firstPrompt: string | undefined }) {
  switch (model.endpoints[0]) {
    case '/embeddings':
      return <Embeddings model={model} />
    case '/rerank':
    case '/reranking':
      return <Rerank model={model} />
    case '/images/generations':
      return <Images model={model} />
    case '/audio/transcriptions':
      return <Audio model={model} />
    default:
      return <Chat model={model} {...(firstPrompt === undefined ? {} : { firstPrompt })} />
  }
}

function byCategory(models: readonly Model[]): Map<Category, Model[]> {
  return Map.groupBy(models, ({ model_categories: [category = 'llm'] }) => category)
}
