import type { Model } from '../api.ts'
import { categoryNames, type Category } from '../model-facts.ts'

/** The model to try, and up to three others beside it that get the same question. */

const BESIDE_MAX = 3

export function ModelChoice({
  models,
  chosen,
  isBeside,
  choose,
}: {
  models: readonly Model[]
  chosen: readonly Model[]
  /** Whether this model can be asked together with others. */
  isBeside: (model: Model) => boolean
  choose: (ids: readonly string[]) => void
}) {
  const ids = chosen.map(({ id }) => id)
  const [first] = chosen
  const left = models.filter((model) => isBeside(model) && !ids.includes(model.id))
  const canAdd = first !== undefined && isBeside(first) && left.length > 0 && chosen.length <= BESIDE_MAX
  return (
    <div class="model-choice">
      {chosen.map((model, index) => (
        <div key={index} class="model-field">
          <label>
            {index === 0 ? 'Model' : `Model ${index + 1}`}
            <select
              value={model.id}
              onChange={({ currentTarget: { value } }) => choose(ids.map((id, at) => (at === index ? value : id)))}
            >
              {[...byCategory(index === 0 ? models : [...left, model])].map(([category, members]) => (
                <optgroup key={category} label={categoryNames[category]}>
                  {members
                    .filter(({ id }) => id === model.id || !ids.includes(id))
                    .map(({ id, name }) => (
                      <option key={id} value={id}>
                        {name}
                      </option>
                    ))}
                </optgroup>
              ))}
            </select>
          </label>
          {index === 0 ? null : (
            <button
              type="button"
              aria-label={`Remove ${model.name}`}
              onClick={() => choose(ids.filter((id) => id !== model.id))}
            >
              ✕
            </button>
          )}
        </div>
      ))}
      {canAdd ? (
        <button type="button" onClick={() => choose([...ids, ...left.slice(0, 1).map(({ id }) => id)])}>
          {chosen.length === 1 ? 'Compare' : 'Add a model'}
        </button>
      ) : null}
    </div>
  )
}

function byCategory(models: readonly Model[]): Map<Category, Model[]> {
  return Map.groupBy(models, ({ model_categories: [category = 'llm'] }) => category)
}
