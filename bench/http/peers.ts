import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Place, Program, Programs } from './other-proxies.ts'

/**
 * Other gateways for models: Portkey from npm, LiteLLM from PyPI. They are no dependencies of Weir: each is installed the
 * first time, into a folder of its own outside the project.
 */
export const peerVersions = { Portkey: '1.15.2', LiteLLM: '1.106.2' }
const PORTKEY = `@portkey-ai/gateway@${peerVersions.Portkey}`
const LITELLM = `litellm[proxy]==${peerVersions.LiteLLM}`
const INSTALL_MS = 15 * 60_000

export const peersFolder =
  process.env['WEIR_PEERS_DIR'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'weir', 'peers')

export const peers: Programs = { Portkey: portkey, LiteLLM: litellm }

function portkey({ port, enginePort }: Place): Program | undefined {
  const folder = join(peersFolder, 'portkey')
  const program = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js')
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const isThere = installed(PORTKEY, program, [['npm', 'install', '--prefix', folder, ...flags, PORTKEY]])
  if (!isThere) return undefined
  return {
    command: process.execPath,
    args: [program, `--port=${port}`, '--headless'],
    headers: {
      authorization: 'Bearer none',
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `http://127.0.0.1:${enginePort}/v1`,
    },
  }
}

/** Needs Python 3.10 or later with its venv module. */
function litellm({ folder, port, enginePort }: Place): Program | undefined {
  const environment = join(peersFolder, 'litellm')
  const program = join(environment, 'bin', 'litellm')
  const isThere = installed(LITELLM, program, [
    ['python3', '-m', 'venv', environment],
    [join(environment, 'bin', 'python'), '-m', 'pip', 'install', '--quiet', LITELLM],
  ])
  if (!isThere) return undefined
  const file = join(folder, 'litellm.yaml')
  const engine = { model: 'openai/engine-name', api_base: `http://127.0.0.1:${enginePort}/v1`, api_key: 'none' }
  writeFileSync(
    file,
    JSON.stringify({
      model_list: [{ model_name: 'bench/model', litellm_params: engine }],
      general_settings: { master_key: 'sk-bench' },
    }),
  )
  return {
    command: program,
    args: ['--config', file, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1'],
    // Nothing outside this machine is asked for prices.
    environment: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR' },
    headers: { authorization: 'Bearer sk-bench' },
  }
}

/** Whether `program` is there, after the commands have been run if it was not. */
function installed(what: string, program: string, commands: readonly (readonly string[])[]): boolean {
  if (existsSync(program)) return true
  console.error(`Installing ${what} into ${peersFolder} …`)
  mkdirSync(peersFolder, { recursive: true })
  for (const [command = '', ...args] of commands) {
    const { status, error } = spawnSync(command, args, { stdio: ['ignore', 2, 2], timeout: INSTALL_MS })
    if (status === 0) continue
    const reason = error?.message ?? `status ${status}; see above`
    console.error(`${what} could not be installed: ${command} ${args.slice(0, 3).join(' ')} failed (${reason}).`)
    return false
  }
  return existsSync(program)
}
