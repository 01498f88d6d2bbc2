import type { Model } from '../core/catalog.ts'
import { fetchDisplay } from './fetch-display.ts'
import { startService, type Service } from '../compose.ts'
import { configOf, parseFlags, type Command } from './command.ts'

export const serve: Command = {
  summary: 'run the service',
  help: `weir serve [--config FILE] [--port N] [--data DIR]

  --config FILE   weir.yaml (default: WEIR_CONFIG, or ./weir.yaml where there is one)
  --port N        the public port (default 8080; WEIR_PORT)
  --data DIR      where keys and the ledger are kept (default ./data; WEIR_DATA_DIR)

SIGTERM or SIGINT stops it: waiting requests get 503 with Retry-After, running ones finish. A second one
stops it at once. SIGHUP reads the catalog again (it is watched as well).`,
  async run(args) {
    const flags = parseFlags(args, { port: 'string' })
    let running: Service | undefined
    const fetching = fetchDisplay(process.stdout, (slug) => {
      const model = running?.models.find(({ id, categories }) => id === slug && categories.includes('llm'))
      return running && model && tryChat(running, model)
    })
    const service = await startService(configOf(flags), fetching.events)
    running = service
    process.stdout.write(banner(service))
    fetching.show()
    process.on('SIGHUP', () => service.reloadCatalog())
    await stopAsked()
    process.once('SIGTERM', () => process.exit(1))
    process.once('SIGINT', () => process.exit(1))
    await service.stop()
  },
}

function stopAsked(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve())
    process.once('SIGINT', () => resolve())
  })
}

function banner(service: Service): string {
  const model = service.models.find((it) => it.categories.includes('llm') && service.isUp(it))
  const lines = ['', `  Weir is running.`, '', `  API       ${service.url}/api/v1`, `  Docs      ${service.url}/docs`]
  lines.push(`  Operator  ${service.adminUrl} (token: see operator-token in the data directory)`)
  if (service.firstKey) lines.push('', `  Your first API key, shown only now:`, `    ${service.firstKey}`)
  lines.push('', '  Try it:')
  if (model) lines.push(`    ${tryChat(service, model)}`)
  else {
    lines.push(`    curl ${service.url}/api/v1/models -H "Authorization: Bearer ${keyOf(service)}"`)
    lines.push('', '  No chat model is up yet. One that is being fetched will be; or name your own in weir.yaml')
    lines.push('  (see weir.example.yaml).')
  }
  return `${lines.join('\n')}\n\n`
}

function tryChat(service: Service, model: Model): string {
  const messages = [{ role: 'user', content: 'What is the capital of France?' }]
  // A small model's first word to a newcomer is better its likeliest one.
  const sampling = model.supportedParameters.includes('temperature') ? { temperature: 0 } : {}
  const body = JSON.stringify({ model: model.id, messages, max_tokens: 40, ...sampling })
  return `curl ${service.url}/api/v1/chat/completions -H "Authorization: Bearer ${keyOf(service)}" -H "Content-Type: application/json" -d '${body}'`
}

/** A key is shown once; later the reader has to bring it. */
function keyOf(service: Service): string {
  return service.firstKey ?? '$WEIR_API_KEY'
}
