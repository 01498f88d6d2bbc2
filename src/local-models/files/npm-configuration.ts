import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { FileAddress } from './download.ts'

interface NpmRegistry {
  /** Ends with a slash. */
  readonly url: string
  readonly headers: Record<string, string>
}

const run = promisify(execFile)

/** Where the tarball of a package is. */
export async function tarballAddress(
  name: string,
  version: string,
  environment: NodeJS.ProcessEnv,
): Promise<FileAddress> {
  const { url, headers } = await npmRegistry(name, environment)
  return { url: `${url}${name}/-/${name.split('/').at(-1) ?? name}-${version}.tgz`, headers }
}

/** The registry for a package and the credentials for it, chosen as npm itself would choose them. */
async function npmRegistry(packageName: string, environment: NodeJS.ProcessEnv): Promise<NpmRegistry> {
  const settings = await npmSettings(environment)
  const scope = packageName.startsWith('@') ? packageName.split('/', 1)[0] : undefined
  const chosen =
    (scope && settings.get(`${scope}:registry`)) ?? settings.get('registry') ?? (await npmDefault(environment))
  const url = chosen.endsWith('/') ? chosen : `${chosen}/`
  return { url, headers: credentials(url, settings) }
}

const defaults = new WeakMap<NodeJS.ProcessEnv, Promise<string>>()

/** What npm uses when nothing is configured. npm takes a second to answer, so it is asked once. */
function npmDefault(environment: NodeJS.ProcessEnv): Promise<string> {
  const known = defaults.get(environment)
  if (known) return known
  const registry = run('npm', ['config', 'get', 'registry'], { env: environment }).then(({ stdout }) => stdout.trim())
  defaults.set(environment, registry)
  return registry
}

/** The nearest setting wins: the environment, then the project's, the user's and the global .npmrc. */
async function npmSettings(environment: NodeJS.ProcessEnv): Promise<Map<string, string>> {
  const files = [
    environment['npm_config_globalconfig'] ?? join(environment['PREFIX'] ?? '/usr/local', 'etc/npmrc'),
    environment['npm_config_userconfig'] ?? join(homedir(), '.npmrc'),
    join(process.cwd(), '.npmrc'),
  ]
  const settings = new Map<string, string>()
  for (const file of files) {
    for (const [name, value] of parseNpmrc(await readOptional(file), environment)) settings.set(name, value)
  }
  const registry = environment['npm_config_registry'] ?? environment['NPM_CONFIG_REGISTRY']
  if (registry) settings.set('registry', registry)
  return settings
}

function parseNpmrc(text: string, environment: NodeJS.ProcessEnv): [string, string][] {
  return text.split('\n').flatMap((line): [string, string][] => {
    const [name = '', ...parts] = line.split('=')
    if (parts.length === 0 || !/^[^#;]/.test(name.trim())) return []
    const value = parts
      .join('=')
      .trim()
      .replace(/^"(.*)"$/, '$1')
    return [[name.trim(), value.replace(/\$\{([^{}]+)\}/g, (_, name: string) => environment[name] ?? '')]]
  })
}

/** Credentials are stored under the registry's address without its scheme, or under a parent path. */
function credentials(url: string, settings: ReadonlyMap<string, string>): Record<string, string> {
  const { host, pathname } = new URL(url)
  const steps = pathname.split('/').filter((step) => step !== '')
  for (let depth = steps.length; depth >= 0; depth--) {
    const place = `//${[host, ...steps.slice(0, depth)].join('/')}/`
    const token = settings.get(`${place}:_authToken`)
    if (token) return { authorization: `Bearer ${token}` }
    const basic = settings.get(`${place}:_auth`)
    if (basic) return { authorization: `Basic ${basic}` }
  }
  return {}
}

async function readOptional(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    return ''
  }
}
