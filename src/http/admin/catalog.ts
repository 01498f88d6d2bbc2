import Type from 'typebox'
import { catalogDiff } from '../../catalog/catalog-diff.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { CatalogSource } from '../../catalog/file.ts'
import { lossesIn } from '../../catalog/lost-prices.ts'
import { deploymentsOf, type Deployment, type Model } from '../../core/catalog.ts'
import { ConfigError } from '../../core/checked-yaml.ts'
import { listSchema, nullable } from '../common-schema.ts'
import { jsonResponse } from '../route.ts'
import { operatorRoute, type OperatorRoute } from './operator-route.ts'

/** The catalog in force, and what the file would change. */

export interface CatalogParts {
  readonly catalog: Catalog
  readonly catalogSource: CatalogSource
  /** The engines, by lane. */
  engines(): readonly EngineState[]
  /** The models whose files are being fetched. */
  downloads(): readonly Download[]
}

export interface EngineState {
  readonly lane: string
  readonly url: string
  readonly isUp: boolean
  readonly failures: number
  readonly lastFailure: string | undefined
}

interface Download {
  readonly model: string
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
  readonly problem: string | undefined
}

const engineSchema = Type.Object({
  lane: Type.String({ description: "The model's id, and for reserved capacity the workspace as well." }),
  model: Type.String(),
  mode: Type.Enum(['serverless', 'dedicated']),
  workspace: nullable(Type.String()),
  kind: nullable(Type.String(), 'null: the deployment has no engine yet.'),
  addresses: Type.Array(
    Type.Object({
      url: Type.String(),
      up: Type.Boolean(),
      failures: Type.Integer({ description: 'Failed calls since the start.' }),
      last_failure: nullable(Type.String()),
    }),
  ),
  download: nullable(
    Type.Object({
      received_bytes: Type.Integer(),
      total_bytes: nullable(Type.Integer()),
      problem: nullable(Type.String()),
    }),
    'How far the files of an embedded model are; null if they are not on their way.',
  ),
})

const engineExample = {
  lane: 'huggingfacetb/smollm2-135m-instruct',
  model: 'huggingfacetb/smollm2-135m-instruct',
  mode: 'serverless',
  workspace: null,
  kind: 'vllm',
  addresses: [{ url: 'http://127.0.0.1:8000/v1', up: true, failures: 0, last_failure: null }],
  download: null,
}

const previewSchema = Type.Object({
  file: nullable(Type.String(), 'null: the catalog is built in.'),
  mistakes: Type.Array(Type.String(), { description: 'With their lines. With any of them, the catalog is not taken.' }),
  losses: Type.Array(Type.String(), { description: 'What would be lost. With any of them, a reload needs force.' }),
  changes: Type.Array(
    Type.Object({
      model: Type.String(),
      change: Type.Enum(['added', 'removed', 'changed']),
      fields: Type.Array(
        Type.Object({ field: Type.String(), before: nullable(Type.String()), after: nullable(Type.String()) }),
      ),
    }),
  ),
})

export function catalogRoutes({ catalog, catalogSource, engines, downloads }: CatalogParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/engines',
      id: 'listEngines',
      summary: 'List engines',
      description: 'The engine of every deployment: where it is, whether it answers, and its failed calls.',
      response: jsonResponse(listSchema(engineSchema), { object: 'list', data: [engineExample] }),
      errors: [],
      answer({ exchange }) {
        const byLane = Map.groupBy(engines(), ({ lane }) => lane)
        const arriving = new Map(downloads().map((it) => [it.model, it]))
        const data = catalog
          .models()
          .flatMap((model) =>
            deploymentsOf(model).map((deployment) =>
              engineView(model, deployment, byLane.get(deployment.lane) ?? [], arriving),
            ),
          )
        exchange.sendJson(JSON.stringify({ object: 'list', data }))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/catalog/preview',
      changesNothing: true,
      id: 'previewCatalog',
      summary: 'Preview the catalog',
      description: 'Reads the catalog file and says what a reload would change. Nothing is taken.',
      response: jsonResponse(previewSchema, {
        file: '/srv/weir/weir.yaml',
        mistakes: [],
        losses: [],
        changes: [
          {
            model: engineExample.model,
            change: 'changed',
            fields: [{ field: 'pricing.input_per_million', before: '0.10', after: '0.12' }],
          },
        ],
      }),
      errors: [],
      answer({ exchange }) {
        const preview = previewOf(catalog.models(), catalogSource)
        exchange.sendJson(JSON.stringify({ file: catalogSource.file ?? null, ...preview }))
      },
    }),
  ]
}

function previewOf(current: readonly Model[], source: CatalogSource): object {
  try {
    const next = source.read()
    return { mistakes: [], losses: lossesIn(current, next), changes: catalogDiff(current, next) }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { mistakes: error.mistakes, losses: [], changes: [] }
  }
}

function engineView(
  model: Model,
  { lane, mode, workspace, engine }: Deployment,
  addresses: readonly EngineState[],
  arriving: ReadonlyMap<string, Download>,
): object {
  const download = engine?.kind === 'embedded' ? arriving.get(engine.model) : undefined
  return {
    lane,
    model: model.id,
    mode,
    workspace: workspace ?? null,
    kind: engine?.kind ?? null,
    addresses: addresses.map(({ url, isUp, failures, lastFailure }) => ({
      url,
      up: isUp,
      failures,
      last_failure: lastFailure ?? null,
    })),
    download: download
      ? {
          received_bytes: download.receivedBytes,
          total_bytes: download.totalBytes ?? null,
          problem: download.problem ?? null,
        }
      : null,
  }
}
