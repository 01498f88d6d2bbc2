// npm run install:agents: installs real coding agents for npm run test:agents, into ~/.cache/weir/agents or WEIR_AGENTS_DIR.
// It takes about 1.2 GB. No script of theirs is run.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { agents } from './agents.mjs'

const directory =
  process.env.WEIR_AGENTS_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'weir', 'agents')

mkdirSync(directory, { recursive: true })
const manifest = join(directory, 'package.json')
if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n')
const packages = Object.values(agents).map(({ name, version }) => `${name}@${version}`)
const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--save-exact']
const { status } = spawnSync('npm', ['install', ...options, ...packages], { cwd: directory, stdio: 'inherit' })
if (status === 0) process.stdout.write(`The agents are in ${directory}. npm run test:agents uses them.\n`)
process.exit(status ?? 1)
