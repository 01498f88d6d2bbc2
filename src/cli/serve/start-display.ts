import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Display, Service } from '../../compose.ts'
import { isDumbTerminal, type Config } from '../../config.ts'
import type { Model } from '../../catalog/model.ts'
import { systemClock } from '../../shared/system-clock.ts'
import { terminalLog } from '../terminal/log-lines.ts'
import { progressBar } from '../terminal/progress.ts'
import { openScreen } from '../terminal/screen.ts'
import { renderFields } from '../terminal/table.ts'
import { viewOn, type View } from '../terminal/view.ts'

/**
 * What `weir serve` shows. On a terminal: an overview, short log lines, and one block with the current download.
 * Anywhere else: JSON only, one line on stdout once the service is running, and the log on stderr.
 */
export interface StartDisplay {
  /** For the service, from before it starts. */
  readonly display: Display
  started(service: Service, config: Config, options: string): Promise<void>
  close(): void
}

const FIRST_KEY_FILE = 'first-api-key'

export function startDisplay({ stdout, stderr }: typeof process, { isJson }: { isJson: boolean }): StartDisplay {
  const isForPerson = stdout.isTTY && !isJson
  const terminal = isJson ? undefined : stdout.isTTY ? stdout : stderr.isTTY ? stderr : undefined
  const view = viewOn(terminal ?? stdout)
  const paintBlock = (line: string): string => view.paint('cyan', line)
  const screen = terminal && openScreen(terminal, { hasBlock: !isDumbTerminal(), paintBlock })
  let running: Service | undefined
  let isChatShown = false

  function ready(): void {
    screen?.setBlock([])
    const model = running?.models.find((it) => isChat(it) && running?.isUp(it))
    if (!running || !model || isChatShown || !isForPerson) return
    isChatShown = true
    screen?.write(`${tryChat(running, model, view)}\n\n`)
  }

  return {
    display: {
      fetching: {
        progress: (progress) => screen?.setBlock([progressBar(progress, viewOn(terminal ?? stdout).width - 1)]),
        ready,
        failed: () => screen?.setBlock([]),
        stopped: () => screen?.setBlock([]),
      },
      ...(screen && stderr.isTTY ? { log: terminalLog(screen, view.paint) } : {}),
    },
    async started(service, config, options) {
      running = service
      if (!isForPerson) return void stdout.write(`${startedJson(service, config)}\n`)
      const model = service.models.find((it) => isChat(it) && service.isUp(it))
      isChatShown = model !== undefined
      screen?.write(await overview({ service, config, options, model, view }))
    },
    close: () => screen?.close(),
  }
}

function startedJson(service: Service, { sharedDir: dataDir }: Config): string {
  return JSON.stringify({
    level: 30,
    time: new Date(systemClock.now()).toISOString(),
    url: service.url,
    api: `${service.url}/api/v1`,
    docs: `${service.url}/docs`,
    // Without a sign-in link: the output of a service is usually kept in a log.
    console: `${service.url}/console`,
    operator: service.adminUrl,
    data_dir: dataDir,
    models: service.models.length,
    // The output of a service is usually kept in a log, and a key must not be in one.
    ...(service.firstKey === undefined ? {} : { first_api_key_file: keepFirstKey(dataDir, service.firstKey) }),
    msg: 'Weir is running',
  })
}

function keepFirstKey(dataDir: string, key: string): string {
  const file = join(dataDir, FIRST_KEY_FILE)
  writeFileSync(file, `${key}\n`, { mode: 0o600, flush: true })
  // The mode above applies only to a new file.
  chmodSync(file, 0o600)
  return file
}

interface Overview {
  readonly service: Service
  readonly config: Config
  /** The options that another command needs to find this service, such as "--data /srv/weir". */
  readonly options: string
  readonly model: Model | undefined
  readonly view: View
}

async function overview({ service, config, options, model, view }: Overview): Promise<string> {
  const { paint } = view
  const token = config.operatorToken === undefined ? 'operator-token in the data directory' : 'yours'
  const link = await service.consoleLink()
  const fields = renderFields(
    [
      ['Console', paint('cyan', link ?? `${service.url}/console`)],
      ['API', paint('cyan', `${service.url}/api/v1`)],
      ['Docs', paint('cyan', `${service.url}/docs`)],
      ['Operator', paint('cyan', await service.operatorConsoleLink())],
      ['Token', token],
      ['Data', config.sharedDir],
      ['Models', String(service.models.length)],
    ],
    view,
  )
  const parts = [
    paint('bold', 'Weir is running.') + paint('dim', ' Ctrl-C stops it.'),
    fields,
    paint('dim', 'The links sign in to the consoles, each once, within 30 minutes.'),
    keyText(service, config, options, view),
    model
      ? tryChat(service, model, view)
      : [
          'No chat model is ready yet. Wait for downloads that are shown, or add your own',
          'model to weir.yaml (weir.example.yaml shows how).',
        ].join('\n'),
  ]
  return `\n${parts.map(indented).join('\n\n')}\n\n`
}

function keyText({ firstKey }: Service, { sharedDir: dataDir }: Config, options: string, { paint }: View): string {
  if (firstKey !== undefined) return `Your first API key (it is not shown again):\n  ${paint('bold', firstKey)}`
  const create = `Make an API key with:\n  npx weir keys create --workspace default${options}`
  const file = join(dataDir, FIRST_KEY_FILE)
  return existsSync(file) ? `${create}\nThe first one is in ${file}.` : create
}

/** Works as pasted on the first start. Later the key is not known. */
function tryChat(service: Service, model: Model, { paint }: View): string {
  // Greedy sampling gives small models their best chance of a correct first answer.
  const sampling = model.supportedParameters.includes('temperature') ? '"temperature": 0, ' : ''
  const key = service.firstKey ?? '"$WEIR_API_KEY"'
  return [
    paint('bold', 'Try it:'),
    `  curl ${service.url}/api/v1/chat/completions \\`,
    `    --oauth2-bearer ${key} \\`,
    `    -H "Content-Type: application/json" -d '{`,
    `      "model": "${model.id}",`,
    `      ${sampling}"max_tokens": 40,`,
    `      "messages": [{"role": "user", "content": "Name the capital of France."}]`,
    `    }'`,
  ].join('\n')
}

function isChat({ categories }: Model): boolean {
  return categories.includes('llm')
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ')
}
