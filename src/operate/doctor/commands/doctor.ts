import { constants, existsSync } from 'node:fs'
import { access, mkdir, statfs } from 'node:fs/promises'
import { availableParallelism, freemem, totalmem } from 'node:os'
import { request } from 'undici'
import { readCertificate } from '../../../server/certificate.ts'
import type { Config } from '../../../config.ts'
import { withoutPassword } from '../../../shared/address-without-password.ts'
import { bytesText } from '../../../shared/bytes-text.ts'
import { deploymentsOf, type EngineDescription, type Model } from '../../../catalog/model.ts'
import { untakenParameters, untakenWarning } from '../../../engines/dialects/listed-parameters.ts'
import { findModel, modelBytes, runtimes } from '../../../local-models/installed.ts'
import { modelFiles } from '../../../local-models/files/model-files.ts'
import { takesTooMuch } from '../../../engines/on-demand/memory-figures.ts'
import { healthCheckOf } from '../../../engines/dialects/health-check.ts'
import { parseAddress, pathAt } from '../../../engines/address.ts'
import { contradictedCountsOf, enginesOf, fetchMetrics, findService, type ServiceNote } from '../../running-service.ts'
import { serviceDirectories } from '../../../cluster/workers/directories.ts'
import { requirePostgres } from '../../../store/database-choice.ts'
import { systemClock } from '../../../shared/system-clock.ts'
import { configOf, parseFlags, ProblemsFound, type Command } from '../../../cli/command.ts'
import { inOrderOfAlerts, runbookOf, serviceFindings } from '../doctor-service.ts'
import type { CheckResult } from '../check-result.ts'
import { examineEngine } from './doctor-engine.ts'
import { count, counted } from '../../../shared/counts.ts'
import type { View } from '../../../cli/terminal/view.ts'

const GIGABYTE = 1_000_000_000
const DAY_MS = 86_400_000
const MARKS = { ok: '✔', note: '•', problem: '✖' } as const
const TONES = { ok: 'green', note: 'yellow', problem: 'red' } as const

export const doctor: Command = {
  summary: 'check the installation and suggest fixes',
  help: `weir doctor
weir doctor engine URL [--kind KIND] [--model NAME] [--api-key KEY]

Checks the machine, the configuration, the data directory, the running service
(its disk, ledger, journal, queues, failed and slow answers, undelivered
events, and the last reconciliation), the engines in the catalog, the
certificate, and the runtimes and models of the embedded engine. Problems of
a running service are in the order in which to look at them, and name their
page in docs/runbooks. Exits with status 1 if there is a problem.

With engine, checks one server instead: identifies it, asks it for a few
tokens, log probabilities, tools, JSON, embeddings and a ranking, and prints the
lines for weir.yaml. Each question has a minute.

  --kind KIND     what the server is, if Weir cannot tell
  --model NAME    which of its models to ask (default: the first)
  --api-key KEY   the key that the server wants`,
  async run([action, ...rest]) {
    if (action === 'engine') return examineEngine(rest)
    const flags = parseFlags(action === undefined ? [] : [action, ...rest])
    const config = configOf(flags)
    const models = config.catalog.read()
    const findings = [
      machine(),
      configuration(config, models),
      ...inOrderOfAlerts([
        await dataDirectory(config),
        ...(await database(config)),
        ...(await running(config)),
        ...(await engines(models)),
        ...(await startedEngines(config)),
        ...certificate(config),
      ]),
      ...(await localRuntimes()),
      ...batchFiles(config),
      ...parameters(models),
      ...localModels(config, models),
    ]
    flags.print({ findings }, (view) => doctorText(findings, view))
    if (findings.some(({ state }) => state === 'problem')) throw new ProblemsFound('problems found; see above')
  },
}

/** One line for all models that are downloaded and one for all that are not; the default catalog has many. */
function doctorText(findings: readonly CheckResult[], view: View): string {
  const models = findings.filter(({ name }) => name === 'model')
  const here = models.filter(({ state }) => state === 'ok').length
  const all = counted(models.length, 'model')
  const summary: CheckResult = {
    name: 'models',
    state: here === models.length ? 'ok' : 'note',
    detail:
      here === models.length
        ? `all ${all} that Weir runs itself are downloaded`
        : `${count(models.length - here)} of ${all} that Weir runs itself are not downloaded`,
    ...(here === models.length
      ? {}
      : { advice: 'weir models list shows them with their sizes, and weir models pull SLUG downloads one' }),
  }
  const others = findings.filter(({ name }) => name !== 'model')
  return [...others, ...(models.length === 0 ? [] : [summary])].map((finding) => findingText(finding, view)).join('\n')
}

function findingText({ name, state, detail, advice }: CheckResult, { paint }: View): string {
  return `${paint(TONES[state], MARKS[state])} ${name}: ${detail}${advice ? `\n    → ${advice}` : ''}`
}

function machine(): CheckResult {
  const memory = `${(freemem() / GIGABYTE).toFixed(1)} of ${(totalmem() / GIGABYTE).toFixed(1)} GB of memory free`
  const detail = `Node ${process.versions.node}, ${process.platform} ${process.arch}, ${availableParallelism()} cores, ${memory}`
  return { name: 'machine', state: 'ok', detail }
}

function configuration(config: Config, models: readonly Model[]): CheckResult {
  const detail = `${config.file ?? 'defaults (no weir.yaml)'}, ${counted(models.length, 'model')} in the catalog`
  return { name: 'configuration', state: 'ok', detail }
}

/** What a backup of the data directory or the database does not have. */
function batchFiles(config: Config): readonly CheckResult[] {
  const files = config.files()
  if (files?.kind !== 's3') return []
  const detail = `in the bucket ${files.bucket}, below batches/; weir backup and pg_dump do not have them`
  return [{ name: 'files of batches', state: 'note', detail, advice: 'back up the bucket, too' }]
}

async function dataDirectory(config: Config): Promise<CheckResult> {
  const name = 'data directory'
  try {
    await mkdir(config.dataDir, { recursive: true, mode: 0o700 })
    await access(config.dataDir, constants.W_OK)
    const { bavail, bsize } = await statfs(config.dataDir)
    const free = (bavail * bsize) / GIGABYTE
    const detail = `${config.dataDir}, ${free.toFixed(1)} GB free`
    if (free >= 1) return { name, state: 'ok', detail }
    return { name, state: 'problem', detail, advice: `free some disk space; see ${runbookOf(name)}` }
  } catch (error) {
    return {
      name,
      state: 'problem',
      detail: (error as Error).message,
      advice: 'choose another directory with --data or data_dir',
    }
  }
}

async function database({ databaseUrl }: Config): Promise<readonly CheckResult[]> {
  if (databaseUrl === undefined) return []
  const name = 'database'
  try {
    await requirePostgres(databaseUrl)
    return [{ name, state: 'ok', detail: `${withoutPassword(databaseUrl)} answers` }]
  } catch (error) {
    return [{ name, state: 'problem', detail: (error as Error).message, advice: `see ${runbookOf(name)}` }]
  }
}

function certificate({ tls }: Config): readonly CheckResult[] {
  if (!tls) return []
  const name = 'certificate'
  try {
    const { names, validUntil } = readCertificate(tls)
    const daysLeft = Math.floor((validUntil.getTime() - systemClock.now()) / DAY_MS)
    const detail = `${names}, valid until ${validUntil.toISOString().slice(0, 10)}`
    if (daysLeft >= 14) return [{ name, state: 'ok', detail }]
    const advice = `renew it: a running service takes the changed files by itself; see ${runbookOf(name)}`
    return [{ name, state: daysLeft < 0 ? 'problem' : 'note', detail, advice }]
  } catch (error) {
    return [{ name, state: 'problem', detail: (error as Error).message }]
  }
}

/** Nothing, if the data directory cannot be read: that has a finding of its own. */
async function running(config: Config): Promise<readonly CheckResult[]> {
  let note: ServiceNote | undefined
  try {
    note = findService(config.dataDir)
  } catch {
    return []
  }
  // Each worker has metrics of its own.
  const metrics = await Promise.all(serviceDirectories(config.dataDir).map(fetchMetrics))
  const found = serviceFindings(metrics.flatMap((families) => families ?? []))
  return [await service(note), ...found, ...(await counts(config))]
}

async function service(note: ServiceNote | undefined): Promise<CheckResult> {
  const name = 'service'
  if (!note) {
    const detail = 'not running on this data directory'
    return { name, state: 'note', detail, advice: 'start it with npm start' }
  }
  if (await answers(`${note.adminUrl}/healthz`)) return { name, state: 'ok', detail: `running at ${note.url}` }
  const detail = `running, but ${note.adminUrl} does not answer`
  return { name, state: 'problem', detail, advice: `see ${runbookOf(name)}` }
}

async function localRuntimes(): Promise<readonly CheckResult[]> {
  return Promise.all(
    runtimes.map(async ({ name, load }): Promise<CheckResult> => {
      try {
        await load()
        return { name, state: 'ok', detail: 'installed' }
      } catch (error) {
        const isMissing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND'
        const reason = (error as Error).message.split('\n')[0]
        return {
          name,
          state: isMissing ? 'note' : 'problem',
          detail: isMissing ? 'not installed' : `does not load: ${reason}`,
          advice: isMissing
            ? 'a service that runs such a model fetches it by itself, and so does weir models pull SLUG'
            : 'delete node_modules and run npm start, which installs it again',
        }
      }
    }),
  )
}

async function engines(models: readonly Model[]): Promise<readonly CheckResult[]> {
  // What Weir starts itself answers only while it is needed.
  const known = models.flatMap(deploymentsOf).flatMap(({ engine }) => (engine && !engine.run ? engine : []))
  const paths = new Map(known.flatMap((engine) => engine.urls.map((url) => [url, harmlessPath(engine)])))
  return Promise.all(
    [...paths].map(async ([url, path]): Promise<CheckResult> => {
      const { origin, prefix, socketPath } = parseAddress(url)
      const isThere =
        socketPath === undefined ? await answers(origin + pathAt({ prefix }, path)) : existsSync(socketPath)
      if (isThere) return { name: 'engine', state: 'ok', detail: url }
      return {
        name: 'engine',
        state: 'problem',
        detail: `${url} does not answer`,
        advice: `start the engine, or correct its URL in the catalog; see ${runbookOf('engine')}`,
      }
    }),
  )
}

/** The engines that the running service starts when they are needed. */
async function startedEngines({ dataDir }: Config): Promise<readonly CheckResult[]> {
  // A service of workers has none.
  const listed = (await enginesOf(dataDir).catch(() => undefined)) ?? []
  return listed.flatMap((engine): CheckResult[] => {
    const { lane, state, problem, needed_bytes: kept, measured_bytes: measured } = engine
    const failed: CheckResult = {
      name: 'engine',
      state: 'problem',
      detail: `${lane} failed: ${problem}`,
      advice: `see what it printed in ${dataDir}/engines, or on the operator's page Engines`,
    }
    const tooLarge: CheckResult = {
      name: 'engine memory',
      state: 'note',
      detail: `${lane} took ${bytesText(measured ?? 0)} of ${engine.device}, where ${bytesText(kept)} are kept for it`,
      advice: 'raise run.memory in the catalog: others may not find the room that they are given',
    }
    const isTooLarge = takesTooMuch({ bytes: kept, measuredBytes: measured ?? undefined })
    return [...(state === 'failed' ? [failed] : []), ...(isTooLarge ? [tooLarge] : [])]
  })
}

/** The engine may be busy, so it gets no request that could disturb it. Any answer counts. */
function harmlessPath(engine: EngineDescription): string {
  const { isCheap, path } = healthCheckOf(engine)
  return isCheap ? path : '//'
}

async function counts(config: Config): Promise<readonly CheckResult[]> {
  const contradicted = await contradictedCountsOf(config.dataDir)
  return contradicted.map(({ lane, kind, answers, counted, least, most }) => ({
    name: 'token counts',
    state: 'note',
    detail: `${lane}: the engine (${kind}) counted ${counted} input tokens where ${least} to ${most} are plausible, in ${answers} ${answers === 1 ? 'answer' : 'answers'} since the start`,
    advice:
      counted > most
        ? 'see whether its chat template adds a long text; if it does not count tokens, set usage: estimated for the engine (docs/billing.md); such answers are billed as counted'
        : 'see whether the engine truncates its input or leaves out what it had in its cache; such answers are billed as counted',
  }))
}

function parameters(models: readonly Model[]): readonly CheckResult[] {
  return untakenParameters(models).map((listed) => ({
    name: 'parameters',
    state: 'note',
    detail: untakenWarning(listed),
    advice: 'take them out of the catalog; docs/engines.md says what each kind takes',
  }))
}

function localModels(config: Config, models: readonly Model[]): readonly CheckResult[] {
  const files = modelFiles(config.modelsDir, { environment: config.environment })
  return models.flatMap(deploymentsOf).flatMap(({ engine }): CheckResult[] => {
    const model = engine?.kind === 'embedded' ? findModel(engine.model) : undefined
    if (!model) return []
    const slug = model.catalog.id
    if (files.isPresent(slug)) return [{ name: 'model', state: 'ok', detail: `${slug} is downloaded` }]
    const size = bytesText(modelBytes(model))
    if (files.stateOf(slug) === 'arriving') {
      return [{ name: 'model', state: 'note', detail: `${slug} is being downloaded (${size})` }]
    }
    const advice = `download it with: weir models pull ${slug}`
    return [{ name: 'model', state: 'note', detail: `${slug} is not downloaded (${size})`, advice }]
  })
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await request(url, { headersTimeout: 3000, bodyTimeout: 3000 })
    await response.body.dump()
    return response.statusCode < 500
  } catch {
    return false
  }
}
