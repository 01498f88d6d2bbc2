import { Type } from 'typebox'
import type { Catalog } from '../../catalog/catalog.ts'
import type { LaneSettings } from '../../catalog/lane-settings.ts'
import { deploymentsOf, type Deployment, type Model, type ReportedLoad } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import { withoutUsableEngine, type MissingFiles } from '../../catalog/unavailable-model.ts'
import type { Engine } from '../engine.ts'
import { onDemandSchema, onDemandView, type OnDemandParts } from './on-demand.ts'
import { EXAMPLE_MODEL, listSchema, nullable } from '../../server/common-schema.ts'
import { jsonResponse } from '../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'

/** The engines of all deployments, and taking an address out of service. */

export interface EnginesParts extends OnDemandParts {
  readonly catalog: Catalog
  readonly lanes: LaneSettings
  /** The engines, by lane. */
  engines(): readonly EngineState[]
  /** Asks the servers of engines for their load. */
  readEngineLoads(): Promise<void>
  engineOf(deployment: Deployment): Engine | undefined
  /** The models whose files are being fetched. */
  downloads(): readonly Download[]
}

export interface EngineState {
  readonly lane: string
  readonly url: string
  readonly isUp: boolean
  readonly inFlight: number
  readonly failures: number
  readonly lastFailure: string | undefined
  readonly cacheTokens?: number | undefined
  readonly load?: ReportedLoad | undefined
}

interface Download {
  readonly model: string
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
  readonly problem: string | undefined
}

const urlExample = 'http://127.0.0.1:8000/v1'

const engineSchema = Type.Object({
  lane: Type.String({
    description: "The model's id, and for reserved capacity the workspace as well.",
    example: EXAMPLE_MODEL,
  }),
  model: Type.String({ example: EXAMPLE_MODEL }),
  mode: Type.Enum(['serverless', 'dedicated']),
  workspace: nullable(Type.String()),
  kind: nullable(Type.String({ example: 'vllm' }), 'null: the deployment has no engine yet.'),
  addresses: Type.Array(
    Type.Object({
      url: Type.String({ example: urlExample }),
      up: Type.Boolean({ example: true }),
      drained: Type.Boolean({ description: 'true: it gets no new calls.' }),
      in_flight: Type.Integer({ description: 'Calls of this service that it is working on.', example: 2 }),
      failures: Type.Integer({ description: 'Failed calls since the start.' }),
      last_failure: nullable(Type.String()),
      cache_tokens: nullable(
        Type.Integer({ example: 445_472 }),
        'How many tokens of prompts its cache is taken to hold, where that decides who gets a prompt.',
      ),
      reported: nullable(
        Type.Object({
          running: Type.Number({ example: 12 }),
          waiting: Type.Number({ example: 3 }),
          cache_use: nullable(Type.Number({ example: 0.42 }), 'From 0 to 1.'),
        }),
        'Its load by its own count, which includes the calls of others. vLLM and SGLang report it, and llama.cpp with --metrics.',
      ),
    }),
  ),
  download: nullable(
    Type.Object({
      state: Type.Enum(['not_downloaded', 'downloading', 'paused', 'failed'], {
        description: 'failed: it is tried again.',
      }),
      received_bytes: Type.Integer(),
      total_bytes: Type.Integer(),
      problem: nullable(Type.String()),
      message: Type.String({ description: 'The message of the error that a request to the model gets.' }),
    }),
    'The files of an embedded model; null once it is downloaded.',
  ),
  on_demand: nullable(onDemandSchema, 'null: Weir does not start this engine, because it has no `run` in the catalog.'),
})

const addressSchema = Type.Object({
  url: Type.String({ minLength: 1, maxLength: 2000, description: 'An address of an engine, as in the catalog.' }),
})
const drainedSchema = Type.Object({ url: Type.String(), drained: Type.Boolean(), in_flight: Type.Integer() })

export function engineRoutes(parts: EnginesParts): readonly OperatorRoute[] {
  const { catalog, lanes, engines, readEngineLoads, engineOf, downloads, onDemand } = parts
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/engines',
      id: 'listEngines',
      summary: 'List engines',
      description: 'The engine of every deployment: where it is, whether it answers, and its failed calls.',
      response: jsonResponse(
        Type.Object({
          ...listSchema(engineSchema).properties,
          drained_without_engine: Type.Array(Type.String(), {
            description: 'Drained addresses that no engine has any more. Undrain one to forget it.',
            example: [],
          }),
        }),
      ),
      errors: [],
      async answer({ exchange }) {
        await readEngineLoads()
        const byLane = Map.groupBy(engines(), ({ lane }) => lane)
        const startable = new Map(onDemand.list().map((it) => [it.lane, onDemandView(it)]))
        const arriving = new Map(downloads().map((it) => [it.model, it]))
        const data = catalog
          .models()
          .flatMap((model) =>
            deploymentsOf(model).map((deployment) =>
              engineView(
                model,
                deployment,
                (byLane.get(deployment.lane) ?? []).map(view),
                downloadView(model, deployment, arriving),
                startable.get(deployment.lane) ?? null,
              ),
            ),
          )
        const known = new Set(engines().map(({ url }) => url))
        const forgotten = lanes.drainedUrls().filter((url) => !known.has(url))
        exchange.sendJson(JSON.stringify({ object: 'list', data, drained_without_engine: forgotten }))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/engines/drain',
      id: 'drainEngine',
      summary: 'Drain an address',
      description:
        'The address gets no new calls, from any model; running calls finish. in_flight says how many are left. It stays drained over restarts, until you undrain it. If a model has no other address that is up, its requests are refused with model_unavailable.',
      body: addressSchema,
      example: { url: urlExample },
      response: jsonResponse(drainedSchema, { url: urlExample, drained: true, in_flight: 2 }),
      errors: ['not_found'],
      state: async ({ body: { url } }) => drainedView(url),
      async answer({ exchange, body: { url } }) {
        drainedView(url)
        await lanes.drain(url)
        exchange.sendJson(JSON.stringify(drainedView(url)))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/engines/undrain',
      id: 'undrainEngine',
      summary: 'Undrain an address',
      description:
        'The address gets calls again. An address that no engine has any more is forgotten, so that it is not drained if the catalog names it again.',
      body: addressSchema,
      example: { url: urlExample },
      response: jsonResponse(drainedSchema, { url: urlExample, drained: false, in_flight: 0 }),
      errors: ['not_found'],
      state: async ({ body: { url } }) => drainedView(url),
      async answer({ exchange, body: { url } }) {
        const before = drainedView(url)
        await lanes.undrain(url)
        const after = { ...before, drained: lanes.drained.has(url) }
        exchange.sendJson(JSON.stringify(after))
      },
    }),
  ]

  function view({ url, isUp, inFlight, failures, lastFailure, cacheTokens, load }: EngineState): object {
    return {
      url,
      up: isUp,
      drained: lanes.drained.has(url),
      in_flight: inFlight,
      failures,
      last_failure: lastFailure ?? null,
      cache_tokens: cacheTokens ?? null,
      reported: load ? { running: load.running, waiting: load.waiting, cache_use: load.cacheUse ?? null } : null,
    }
  }

  function downloadView(model: Model, deployment: Deployment, arriving: ReadonlyMap<string, Download>): object | null {
    const missing = engineOf(deployment)?.missingFiles?.()
    if (!missing) return null
    const { receivedBytes = 0, totalBytes, problem } = arriving.get(missing.slug) ?? {}
    return {
      state: stateOf(missing, problem),
      received_bytes: receivedBytes,
      total_bytes: totalBytes ?? missing.bytes,
      problem: problem ?? null,
      message: withoutUsableEngine(model, deployment, missing).error.message,
    }
  }

  /** Throws if no engine has this address and it is not drained. Several deployments may share it. */
  function drainedView(url: string): object {
    const sharing = engines().filter((it) => it.url === url && url !== 'embedded')
    if (sharing.length === 0 && !lanes.drained.has(url)) {
      const message = `No engine has the address "${url.slice(0, 200)}". GET /admin/v1/engines lists them; embedded engines cannot be drained.`
      throw new ApiError('not_found', message, { param: 'url' })
    }
    return {
      url,
      drained: lanes.drained.has(url),
      in_flight: sharing.reduce((sum, { inFlight }) => sum + inFlight, 0),
    }
  }
}

function stateOf({ isPaused, isArriving }: MissingFiles, problem: string | undefined): string {
  if (isPaused) return 'paused'
  if (problem !== undefined) return 'failed'
  return isArriving ? 'downloading' : 'not_downloaded'
}

function engineView(
  model: Model,
  { lane, mode, workspace, engine }: Deployment,
  addresses: readonly object[],
  download: object | null,
  onDemand: object | null,
): object {
  return {
    lane,
    model: model.id,
    mode,
    workspace: workspace ?? null,
    kind: engine?.kind ?? null,
    addresses,
    download,
    on_demand: onDemand,
  }
}
