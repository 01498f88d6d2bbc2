import { Type } from 'typebox'
import type { Accounts } from '../../../workspaces/accounts.ts'
import type { Catalog } from '../../../catalog/catalog.ts'
import { priceListSchema } from '../../../catalog/file.ts'
import type { Model } from '../../../catalog/model.ts'
import type { PriceBook } from '../price-book.ts'
import { listPrices } from '../../../catalog/list-prices.ts'
import { ApiError } from '../../../shared/errors.ts'
import { pricesByKind, type ModelPrices } from '../../rating/price-kinds.ts'
import { invalidParameter } from '../../../shared/json/schema-check.ts'
import { EXAMPLE_MODEL, listSchema } from '../../../server/common-schema.ts'
import { jsonResponse } from '../../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'

/** The prices of workspaces that do not pay the list price. */

export interface PricesParts {
  readonly accounts: Accounts
  readonly catalog: Catalog
  readonly prices: PriceBook
}

const priceParameters = {
  workspace: { description: 'The name or id of a workspace.', example: 'acme' },
  model: {
    description: 'The slug of a model, or a short id. Slashes may stand as they are.',
    example: EXAMPLE_MODEL,
  },
}

const model = Type.String({ example: EXAMPLE_MODEL })
const pricingExample = { input_per_million: '0.08', output_per_million: '0.16' }
const workspacePriceSchema = Type.Object({ model, pricing: { ...priceListSchema, example: pricingExample } })

export function priceRoutes(parts: PricesParts): readonly OperatorRoute[] {
  const { accounts, prices } = parts
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/workspaces/{workspace}/prices',
      id: 'listWorkspacePrices',
      roles: ['finance', 'viewer'],
      summary: "List a workspace's own prices",
      description: 'The models for which the workspace does not pay the list price.',
      parameters: { workspace: priceParameters.workspace },
      response: jsonResponse(listSchema(workspacePriceSchema)),
      errors: ['not_found'],
      async answer({ exchange, parameters }) {
        const own = prices.workspacePrices(accounts.workspace(parameters.workspace).id)
        const data = [...own].map(([model, pricing]) => ({ model, pricing }))
        exchange.sendJson(JSON.stringify({ object: 'list', data }))
      },
    }),
    operatorRoute({
      method: 'PUT',
      path: '/admin/v1/workspaces/{workspace}/prices/{model+}',
      id: 'setWorkspacePrice',
      summary: 'Set a price',
      description:
        'Gives a workspace its own price for a model, from the next request on. Prices that are left out stay at the list price.',
      parameters: priceParameters,
      body: priceListSchema,
      example: pricingExample,
      response: jsonResponse(workspacePriceSchema),
      errors: ['not_found', 'model_not_found'],
      state: async ({ parameters: { workspace, model } }) => ownPrice(parts, workspace, model),
      async answer({ exchange, parameters: { workspace, model }, body: pricing }) {
        await setPrice(parts, workspace, model, pricing)
        exchange.sendJson(JSON.stringify({ model, pricing }))
      },
    }),
    operatorRoute({
      method: 'DELETE',
      path: '/admin/v1/workspaces/{workspace}/prices/{model+}',
      id: 'clearWorkspacePrice',
      summary: 'Return to the list price',
      description: "Removes the workspace's own price for a model, from the next request on.",
      parameters: priceParameters,
      response: jsonResponse(Type.Object({ model, pricing: Type.Null() })),
      errors: ['not_found', 'model_not_found'],
      state: async ({ parameters: { workspace, model } }) => ownPrice(parts, workspace, model),
      async answer({ exchange, parameters: { workspace, model } }) {
        await setPrice(parts, workspace, model, null)
        exchange.sendJson(JSON.stringify({ model, pricing: null }))
      },
    }),
  ]
}

/** What the workspace pays for a model, if not the list price. */
function ownPrice(parts: PricesParts, workspace: string, slug: string): object {
  const own = parts.prices.workspacePrices(parts.accounts.workspace(workspace).id)
  return { pricing: own.get(modelOf(parts, slug).id) ?? null }
}

function modelOf({ catalog }: PricesParts, slug: string): Model {
  const model = catalog.models().find((it) => it.id === slug || it.aliases.includes(slug))
  if (model) return model
  throw new ApiError('model_not_found', `The model '${slug}' is not in the catalog.`, { param: 'model' })
}

async function setPrice(
  parts: PricesParts,
  workspace: string,
  slug: string,
  pricing: ModelPrices | null,
): Promise<void> {
  const { id } = parts.accounts.workspace(workspace)
  const model = modelOf(parts, slug)
  const lists = pricesByKind(pricing ? { ...listPrices(model), ...pricing } : {})
  if ('badKey' in lists) throw invalidParameter('invalid_value', lists.badKey, lists.rule)
  await parts.prices.setWorkspacePrice(model, id, pricing)
}
