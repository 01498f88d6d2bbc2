import { engineKinds, type EngineKind } from '../../../catalog/model.ts'
import { parseFlags, ProblemsFound, UsageError } from '../../../cli/command.ts'
import { engineClient, QUESTION_MS, type EngineClient } from '../doctor-engine-client.ts'
import { catalogLines } from '../doctor-engine-entry.ts'
import { fixOf } from '../doctor-engine-fixes.ts'
import { questions, questionsFor, type Finding, type QuestionName } from '../doctor-engine-questions.ts'
import {
  contextLengthIn,
  modelsIn,
  recognise,
  telltalePaths,
  type ProbeAnswer,
  type ProbeAnswers,
} from '../doctor-engine-recognition.ts'

/** `weir doctor engine URL`: what a server is, what it can do, and how to put it into weir.yaml. */
export async function examineEngine(args: readonly string[]): Promise<void> {
  const flags = parseFlags(args, { kind: 'string', model: 'string', 'api-key': 'string' }, 1)
  const url = addressOf(flags.positionals[0])
  const givenKind = kindOf(flags.text('kind'))
  const apiKey = flags.text('api-key')

  progress(`looking at ${url.href}`)
  const answers = await probeAll(url, engineClient('', apiKey))
  if (Object.keys(answers).length === 0) throw new ProblemsFound(`${url.href} does not answer`)
  if (Object.values(answers).every(({ status }) => status === 401 || status === 403)) {
    throw new ProblemsFound(`${url.href} refuses every request without a key; give it with --api-key`)
  }
  const recognition = recognise(url.hostname, answers)
  const kind = givenKind ?? recognition?.kind
  if (kind === undefined) {
    throw new ProblemsFound(`${url.href} answers, but as no server that Weir knows; say what it is with --kind`)
  }

  const base = baseOf(url, answers)
  const models = modelsIn(
    (answers[new URL(`${base}/models`).pathname] ?? answers['/v1/models'] ?? answers['/models'])?.json,
  )
  const listed = models.find(({ id }) => id === flags.text('model')) ?? models[0]
  const model = flags.text('model') ?? listed?.id ?? 'default'
  const findings = await runQuestions(engineClient(base, apiKey), kind, model)
  const contextLength = contextLengthIn(answers) ?? listed?.contextLength
  const lines = catalogLines({ kind, url: base, model, contextLength, hasApiKey: apiKey !== undefined, findings })

  const server = recognition ?? { server: 'an unknown server', version: undefined, evidence: '--kind' }
  const names = models.map(({ id }) => id)
  flags.print({ kind, server: server.server, version: server.version ?? null, models: names, findings, lines }, () =>
    [
      `${server.server}${server.version ? ` ${server.version}` : ''} (kind: ${kind}), seen at ${server.evidence}`,
      `models: ${names.join(', ') || 'it does not list any'}`,
      ...findings.flatMap(({ question, state, detail, fix }) => [
        `${state === 'yes' ? '✔' : '✖'} ${question}: ${detail}`,
        ...(fix === undefined ? [] : [`  → ${fix}`]),
      ]),
      '',
      lines.trimEnd(),
    ].join('\n'),
  )
}

function addressOf(given: string | undefined): URL {
  if (given === undefined) throw new UsageError('the address of the engine is missing, such as http://127.0.0.1:8000')
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol)) {
    throw new UsageError(`"${given}" is not an http:// or https:// address`)
  }
  return new URL(given)
}

function kindOf(given: string | undefined): EngineKind | undefined {
  if (given === undefined) return undefined
  const kind = engineKinds.find((it) => it === given && it !== 'embedded')
  if (kind) return kind
  throw new UsageError(`--kind must be one of ${engineKinds.filter((it) => it !== 'embedded').join(', ')}`)
}

/** Requests every path that identifies a kind of server, and the list of models below the given address. */
async function probeAll(url: URL, client: EngineClient): Promise<ProbeAnswers> {
  const own = `${url.pathname.replace(/\/$/, '')}/models`
  const seen = await Promise.all(
    [...new Set([...telltalePaths, own])].map(async (path): Promise<[string, ProbeAnswer | undefined]> => [
      path,
      await client.get(url.origin + path),
    ]),
  )
  return Object.fromEntries(seen.filter((it): it is [string, ProbeAnswer] => it[1] !== undefined))
}

/** The given path, or the one below which the server lists its models. */
function baseOf(url: URL, answers: ProbeAnswers): string {
  const path = url.pathname.replace(/\/$/, '')
  if (path !== '') return url.origin + path
  const isAtRoot = modelsIn(answers['/v1/models']?.json).length === 0 && modelsIn(answers['/models']?.json).length > 0
  return isAtRoot ? url.origin : `${url.origin}/v1`
}

async function runQuestions(client: EngineClient, kind: EngineKind, model: string): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const question of questionsFor(kind)) {
    // The other questions about chats would fail for the same reason.
    const isPointless = findings.some((it) => it.question === 'chat' && it.state === 'no')
    if (isPointless && question !== 'embeddings' && question !== 'rerank') continue
    progress(`asking: ${question}`)
    findings.push(await runQuestion(client, kind, model, question))
  }
  return findings
}

async function runQuestion(
  client: EngineClient,
  kind: EngineKind,
  model: string,
  question: QuestionName,
): Promise<Finding> {
  try {
    const answer = await questions[question]({ client, kind, model })
    const fix = answer.state === 'no' ? fixOf(question, kind) : undefined
    return { question, ...answer, ...(fix === undefined ? {} : { fix }) }
  } catch (error) {
    // No option changes that a server is slow or breaks off.
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    const detail = isLate ? `no answer within ${QUESTION_MS / 1000} s` : (error as Error).message
    return { question, state: 'no', detail }
  }
}

/** On stderr, so that --json and pipes stay clean. */
function progress(line: string): void {
  process.stderr.write(`… ${line}\n`)
}
