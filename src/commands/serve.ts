import type { Model } from '../core/catalog.ts'
import { fetchDisplay } from './fetch-display.ts'
import { startService, type Service } from '../compose.ts'
import type { Config } from '../config.ts'
import { configOf, parseFlags, type Command } from './command.ts'

export const serve: Command = {
  summary: 'run the service',
  help: `weir serve [--config FILE] [--port N] [--data DIR]

Runs the service. SIGTERM or SIGINT stops it: waiting requests get status 503
with Retry-After, and running requests finish. A second signal stops it at once.
SIGHUP reloads the catalog, which also happens when its file changes; see weir
reload. If usage can no longer be recorded, the service stops by itself, with
status 1.

  --port N   port of the public API (default: $WEIR_PORT, or server.port in
             weir.yaml, or 8080)`,
  async run(args) {
    const flags = parseFlags(args, { port: 'string' })
    let running: Service | undefined
    const fetching = fetchDisplay(process.stdout, (slug) => {
      const model = running?.models.find(({ id, categories }) => id === slug && categories.includes('llm'))
      return running && model && tryChat(running, model)
    })
    const config = configOf(flags)
    const service = await startService(config, fetching.events)
    running = service
    process.stdout.write(banner(service, config))
    fetching.show()
    process.on('SIGHUP', () => service.reloadCatalog())
    const failure = await Promise.race([stopSignal(), service.failed])
    process.once('SIGTERM', () => process.exit(1))
    process.once('SIGINT', () => process.exit(1))
    await service.stop()
    if (failure) throw failure
  },
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve())
    process.once('SIGINT', () => resolve())
  })
}

function banner(service: Service, { operatorToken }: Config): string {
  const model = service.models.find((it) => it.categories.includes('llm') && service.isUp(it))
  const lines = ['', `  Weir is running.`, '', `  API       ${service.url}/api/v1`, `  Docs      ${service.url}/docs`]
  const token = operatorToken === undefined ? 'the token is in operator-token in the data directory' : 'with your token'
  lines.push(`  Operator  ${service.adminUrl} (${token})`)
  if (service.firstKey) lines.push('', `  Your first API key (it is not shown again):`, `    ${service.firstKey}`)
  lines.push('', '  Try it:')
  if (model) lines.push(`    ${tryChat(service, model)}`)
  else {
    lines.push(`    curl ${service.url}/api/v1/models -H "Authorization: Bearer ${keyOf(service)}"`)
    lines.push('', '  No chat model is ready yet. Wait for a download to finish, or add your own model to')
    lines.push('  weir.yaml (see weir.example.yaml).')
  }
  return `${lines.join('\n')}\n\n`
}

function tryChat(service: Service, model: Model): string {
  const messages = [{ role: 'user', content: 'What is the capital of France?' }]
  // Greedy sampling gives small models their best chance of a correct first answer.
  const sampling = model.supportedParameters.includes('temperature') ? { temperature: 0 } : {}
  const body = JSON.stringify({ model: model.id, messages, max_tokens: 40, ...sampling })
  return `curl ${service.url}/api/v1/chat/completions -H "Authorization: Bearer ${keyOf(service)}" -H "Content-Type: application/json" -d '${body}'`
}

/** The key is only known on the first start; later the reader has to fill in their own. */
function keyOf(service: Service): string {
  return service.firstKey ?? '$WEIR_API_KEY'
}
