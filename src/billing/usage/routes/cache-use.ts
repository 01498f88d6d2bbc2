import { Type, type TInteger, type TObject } from 'typebox'
import { EXAMPLE_MODEL, exampleOf, nullable } from '../../../server/common-schema.ts'
import { jsonResponse } from '../../../server/route.ts'

/** How the use of engines' caches is reported, to the keys of a workspace and to the operator. */

const count = (example: number, description: string): TInteger => Type.Integer({ description, example })

const changeSchema = Type.Object({
  at: Type.String({ example: '2026-11-15T22:04:05.640Z' }),
  message: count(0, 'The message that changed, from 0. -1: the tools.'),
  after_character: count(
    256,
    'Up to here the prompt was as before, counted through tools, roles and texts. The change is in the next few hundred.',
  ),
})

const entrySchema = Type.Object({
  key: Type.String({ description: 'The id of a key.', example: 'key_7f3a9c21' }),
  model: Type.String({ example: EXAMPLE_MODEL }),
  requests: count(40, 'Answers with a count of the engine.'),
  input_tokens: count(90_000, 'Of these requests.'),
  cached_input_tokens: count(22_500, 'The part of them that was in the cache of an engine.'),
  cache_hit_rate: Type.Number({ description: 'cached_input_tokens / input_tokens.', example: 0.25 }),
  misses: Type.Object(
    {
      first_use: count(2, 'The prompt began like no other.'),
      prefix_changed: count(28, 'Most of the prompt was the same as before, but something near its beginning was not.'),
      evicted: count(0, 'The engine had read it, but no longer had it.'),
      moved: count(1, 'Another address had it, but was down or far busier.'),
    },
    {
      description:
        'Requests of which less than half was cached, by likely cause. Known for models with balance: prefix, which is the default with several addresses.',
    },
  ),
  latest_change: nullable(
    { ...changeSchema, example: exampleOf(changeSchema) },
    'Where a prompt began to differ from the one before, the last time that it did.',
  ),
})

const workspaceField = { workspace: Type.String({ description: 'The name of a workspace.', example: 'acme' }) }

const listOf = (item: TObject): TObject =>
  Type.Object({
    object: Type.Literal('list'),
    data: Type.Array(item, { description: 'The latest 2000, since the start.' }),
  })

export const ownCacheResponse = jsonResponse(listOf(entrySchema))
export const cacheResponse = jsonResponse(listOf(Type.Object({ ...workspaceField, ...entrySchema.properties })))
