// npm run dev [-- OPTIONS of weir serve]: runs the service from the working tree, and restarts it when a source or weir.yaml
// changes. A start builds the consoles if their sources have changed.
import { spawn } from 'node:child_process'
import { readdirSync, watch } from 'node:fs'
import { join, sep } from 'node:path'
import { ensureInstalled, root, runtime } from './bootstrap.mjs'

const SOURCES = ['src', 'console', join('packages', 'local-models')]
const NO_SOURCES = ['node_modules', '.fetching', 'test']
/** An editor writes a file in several steps, and several files one after the other. */
const SETTLE_MS = 100

ensureInstalled({ development: true })
let service
let isStopping = false
let isEnding = false
let watchers = []
let timer
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end)
start()

function start() {
  const earlier = watchers
  watchers = [
    // One for each folder: node --watch-path and recursive watching on Linux lose a file that an editor replaces.
    ...sourceFolders().map((folder) => watch(folder, restart)),
    watch(root, (_, name) => name === 'weir.yaml' && restart()),
  ]
  for (const watcher of earlier) watcher.close()
  isStopping = false
  // In a process group of its own: otherwise it would get Ctrl-C twice, and the second one ends it at once.
  service = spawn(runtime(), [join(root, 'bin', 'weir.mjs'), 'serve', ...process.argv.slice(2)], {
    stdio: 'inherit',
    detached: true,
  })
  service.once('exit', (code) => {
    service = undefined
    if (isEnding) process.exit(code ?? 1)
    if (isStopping) start()
    else process.stderr.write('The service has ended. It starts again when a file changes.\n')
  })
}

function sourceFolders() {
  return SOURCES.flatMap((source) => [
    join(root, source),
    ...readdirSync(join(root, source), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
      .filter((folder) => !NO_SOURCES.some((name) => folder.slice(root.length).split(sep).includes(name))),
  ])
}

function restart() {
  clearTimeout(timer)
  timer = setTimeout(() => {
    if (isStopping || isEnding) return
    if (!service) return start()
    isStopping = true
    service.kill('SIGTERM')
  }, SETTLE_MS)
}

function end() {
  if (!service) process.exit()
  isEnding = true
  service.kill('SIGTERM')
}
