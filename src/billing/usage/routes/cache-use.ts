import { Type, type TInteger, type TObject } from 'typebox'
import { nullable } from '../../../server/common-schema.ts'
import { jsonResponse } from '../../../server/route.ts'

/** How the use of engines' caches is reported, to the keys of a workspace and to the operator. */

const count = (description: string): TInteger => Type.Integer({ description })

const entrySchema = Type.Object({
  key: Type.String({ description: 'The id of a key.' }),
  model: Type.String(),
  requests: count('Answers with a count of the engine.'),
  input_tokens: count('Of these requests.'),
  cached_input_tokens: count('The part of them that was in the cache of an engine.'),
  cache_hit_rate: Type.Number({ description: 'cached_input_tokens / input_tokens.' }),
  misses: Type.Object(
    {
      first_use: count('The prompt began like no other.'),
      prefix_changed: count('Most of the prompt was the same as before, but something near its beginning was not.'),
      evicted: count('The engine had read it, but no longer had it.'),
      moved: count('Another address had it, but was down or far busier.'),
    },
    {
      description:
        'Requests of which less than half was cached, by likely cause. Known for models with balance: prefix, which is the default with several addresses.',
    },
  ),
  latest_change: nullable(
    Type.Object({
      at: Type.String(),
      message: Type.Integer({ description: 'The message that changed, from 0. -1: the tools.' }),
      after_character: count(
        'Up to here the prompt was as before, counted through tools, roles and texts. The change is in the next few hundred.',
      ),
    }),
    'Where a prompt began to differ from the one before, the last time that it did.',
  ),
})

const example = {
  key: 'key_7f3a9c21',
  model: 'huggingfacetb/smollm2-135m-instruct',
  requests: 40,
  input_tokens: 90_000,
  cached_input_tokens: 22_500,
  cache_hit_rate: 0.25,
  misses: { first_use: 2, prefix_changed: 28, evicted: 0, moved: 1 },
  latest_change: { at: '2026-11-15T22:04:05.640Z', message: 0, after_character: 256 },
}

const workspaceField = { workspace: Type.String({ description: 'The name of a workspace.' }) }

const listOf = (item: TObject): TObject =>
  Type.Object({
    object: Type.Literal('list'),
    data: Type.Array(item, { description: 'The latest 2000, since the start.' }),
  })

export const ownCacheResponse = jsonResponse(listOf(entrySchema), { object: 'list', data: [example] })
export const cacheResponse = jsonResponse(listOf(Type.Object({ ...workspaceField, ...entrySchema.properties })), {
  object: 'list',
  data: [{ workspace: 'acme', ...example }],
})
