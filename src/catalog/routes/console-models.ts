import { ApiError } from '../../shared/errors.ts'
import type { Workspace } from '../../workspaces/workspace.ts'
import { CONSOLE_BASE } from '../../server/console/session-route.ts'
import { jsonResponse, openRoute, type OpenRoute } from '../../server/route.ts'
import { modelListSchema } from './model-schema.ts'
import { listModels, type ModelsParts } from './models.ts'

/** The models and their list prices without signing in, if the operator allows that. */

export interface PublicModelsParts extends ModelsParts {
  readonly consoleModels: 'members' | 'public'
}

/** Sees what every workspace sees, at list prices. */
const everyone: Workspace = {
  id: '',
  name: '',
  requestsPerMinute: null,
  tokensPerMinute: null,
  createdAt: 0,
  spendLimit: null,
  buyer: { name: null, abn: null, address: null, purchaseOrder: null, email: null },
}

export function publicModelsRoute(parts: PublicModelsParts): OpenRoute {
  return {
    ...openRoute(
      `${CONSOLE_BASE}/public-models`,
      async (exchange) => {
        if (parts.consoleModels !== 'public') throw new ApiError('missing_api_key', 'Sign in to see the models.')
        exchange.sendJson(JSON.stringify(listModels(parts, { workspace: everyone }, { scope: 'catalog' })))
      },
      {
        id: 'publicModels',
        summary: 'Models for visitors',
        description: 'The models with their list prices, if console.models is public.',
        response: jsonResponse(modelListSchema),
        errors: ['missing_api_key', 'rate_limit_exceeded'],
      },
    ),
    isCounted: true,
  }
}
