import { Type } from 'typebox'
import { catalogDiff } from '../catalog-diff.ts'
import type { Catalog } from '../catalog.ts'
import { priceListSchema, type CatalogSource } from '../file.ts'
import { listPrices } from '../list-prices.ts'
import { lossesIn } from '../lost-prices.ts'
import { ApiError } from '../../shared/errors.ts'
import { ConfigError } from '../../shared/checked-yaml.ts'
import type { PendingSetting } from '../../shared/settings.ts'
import { EXAMPLE_MODEL, nullable } from '../../server/common-schema.ts'
import { jsonResponse } from '../../server/route.ts'
import { needsRestartSchema, pendingView } from '../../server/needs-restart.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'

/** The catalog in force, and what the file would change. */

export interface CatalogParts {
  readonly catalog: Catalog
  readonly catalogSource: CatalogSource
  /** Throws on a mistake in the file. */
  needRestart(): readonly PendingSetting[]
}

const previewSchema = Type.Object({
  file: nullable(Type.String({ example: '/srv/weir/weir.yaml' }), 'null: the catalog is built in.'),
  mistakes: Type.Array(Type.String(), {
    description: 'With their lines. With any of them, the catalog is not applied.',
    example: [],
  }),
  needs_restart: needsRestartSchema,
  losses: Type.Array(Type.String(), {
    description: 'What would be lost. With any of them, a reload needs force.',
    example: [],
  }),
  changes: Type.Array(
    Type.Object({
      model: Type.String({ example: EXAMPLE_MODEL }),
      change: Type.Enum(['added', 'removed', 'changed'], { example: 'changed' }),
      fields: Type.Array(
        Type.Object({
          field: Type.String({ example: 'pricing.input_per_million' }),
          before: nullable(Type.String({ example: '0.10' })),
          after: nullable(Type.String({ example: '0.12' })),
        }),
      ),
    }),
  ),
})

const modelSchema = Type.Object({
  id: Type.String({ example: EXAMPLE_MODEL }),
  name: Type.String({ example: 'SmolLM2 135M Instruct (Q4_1)' }),
  description: Type.String(),
  aliases: Type.Array(Type.String({ example: 'qwen2.5-coder' })),
  categories: Type.Array(Type.String({ example: 'llm' })),
  context_length: Type.Integer({ example: 8192 }),
  max_completion_tokens: Type.Integer({ example: 2048 }),
  pricing: priceListSchema,
})

export function catalogRoutes(parts: CatalogParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/models/{model+}',
      id: 'getModel',
      summary: 'A model of the catalog',
      description: 'What the catalog says about a model, with its list prices in AUD excluding GST.',
      parameters: { model: { description: 'The id of a model. Slashes need no escaping.', example: EXAMPLE_MODEL } },
      response: jsonResponse(modelSchema),
      errors: ['not_found'],
      async answer({ exchange, parameters: { model: id } }) {
        const model = parts.catalog.models().find((it) => it.id === id)
        if (!model)
          throw new ApiError('not_found', `The catalog has no model "${id.slice(0, 200)}".`, { param: 'model' })
        const { name, description, aliases, categories, contextLength, maxCompletionTokens } = model
        const limits = { context_length: contextLength, max_completion_tokens: maxCompletionTokens }
        const view = { id, name, description, aliases, categories, ...limits, pricing: listPrices(model) }
        exchange.sendJson(JSON.stringify(view))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/catalog/preview',
      changesNothing: true,
      id: 'previewCatalog',
      summary: 'Preview the catalog',
      description: 'Reads the catalog file and reports what a reload would change. Nothing is applied.',
      response: jsonResponse(previewSchema),
      errors: [],
      async answer({ exchange }) {
        exchange.sendJson(JSON.stringify({ file: parts.catalogSource.file ?? null, ...previewOf(parts) }))
      },
    }),
  ]
}

function previewOf({ catalog, catalogSource, needRestart }: CatalogParts): object {
  const current = catalog.models()
  try {
    const next = catalogSource.read()
    return {
      mistakes: [],
      needs_restart: needRestart().map(pendingView),
      losses: lossesIn(current, next),
      changes: catalogDiff(current, next),
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { mistakes: error.mistakes, needs_restart: [], losses: [], changes: [] }
  }
}
