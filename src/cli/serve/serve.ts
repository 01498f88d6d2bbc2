import { startService, type Service } from '../../compose.ts'
import { findMistakes, isFirstWorker, type Config } from '../../config.ts'
import { ConfigError } from '../../shared/checked-yaml.ts'
import { primaryGone, reportRunning, workerConfig, workerPlace } from './worker.ts'
import { configOf, overridesOf, parseFlags, UsageError, type Command, type Flags } from '../command.ts'
import { listenFailure } from './listen-failure.ts'
import { requireShared, runWorkers, workersOf } from './serve-workers.ts'
import { startDisplay, type StartDisplay } from './start-display.ts'
import { stopSignal } from './stop-signal.ts'

export const serve: Command = {
  summary: 'run the service',
  help: `weir serve [--config FILE] [--port N] [--data DIR] [--workers N]

Runs the service. SIGTERM or SIGINT stops it: waiting requests get status 503
with Retry-After, and running requests finish. A second signal stops it at once.
SIGHUP reloads weir.yaml and the catalog, which also happens when a file
changes; see weir reload. Closing the terminal on which the service was started
stops it. If usage can no longer be recorded, the service stops by itself, with
status 1.

On a terminal it shows a short log. Otherwise, and with --json, it writes JSON
only: one line on stdout once it runs, and its log on stderr. The very first
start makes an API key. It is shown on a terminal, or else written to
first-api-key in the data directory.

  --port N   port of the public API (default: $WEIR_PORT, or server.port in
             weir.yaml, or 8080)
  --workers N  run N replicas on this machine, which share the port. They need
             Redis and PostgreSQL. The first one has the operator's listener. A
             worker that ends is replaced`,
  async run(args) {
    const flags = parseFlags(args, { port: 'string', workers: 'string', worker: 'string' })
    const workers = workersOf(flags.text('workers'))
    const place = workerPlace(flags.text('worker'))
    if (flags.values['worker'] !== undefined && !place) throw new UsageError('--worker is what --workers starts')
    const configured = checkedConfig(flags)
    if (workers !== undefined) return runWorkers(workers, requireShared(configured), sameArgs(flags))
    const config = place ? workerConfig(configured, place) : configured
    const display = startDisplay(process, { isJson: flags.values['json'] === true })
    try {
      await runUntilStopped(flags, config, display)
    } finally {
      display.close()
    }
  },
}

async function runUntilStopped(flags: Flags, config: Config, { display, started }: StartDisplay): Promise<void> {
  const service = await start(config, display)
  // Before the output reports that the service is running.
  const stopped = stopSignal(() => service.reloadCatalog())
  const signalled = config.worker === undefined ? stopped : Promise.race([stopped, primaryGone()])
  // Only the first worker reports the start.
  if (isFirstWorker(config)) await started(service, config, optionsOf(flags))
  if (config.worker !== undefined) reportRunning()
  const failure = await Promise.race([signalled.then(() => undefined), service.drained, service.failed])
  await service.stop()
  if (failure) throw failure
}

/** Reports every mistake in the file, not only the first one. */
function checkedConfig(flags: Flags): Config {
  try {
    const config = configOf(flags)
    config.catalog.read()
    return config
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(findMistakes(overridesOf(flags)).mistakes, { cause: error })
    throw error
  }
}

async function start(config: Config, display: StartDisplay['display']): Promise<Service> {
  try {
    return await startService(config, display)
  } catch (error) {
    const explained = listenFailure(error, config)
    throw explained === undefined ? error : new ConfigError(explained, { cause: error })
  }
}

/** The arguments of a worker. */
function sameArgs(flags: Flags): readonly string[] {
  const named = ['config', 'data', 'port'].flatMap((name) => {
    const value = flags.text(name)
    return value === undefined ? [] : [`--${name}`, value]
  })
  return flags.values['json'] === true ? [...named, '--json'] : named
}

/** What another command needs to find the same data directory. */
function optionsOf(flags: Flags): string {
  return ['config', 'data']
    .map((name) => (flags.text(name) === undefined ? '' : ` --${name} ${flags.text(name)}`))
    .join('')
}
