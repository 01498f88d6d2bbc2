import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The Python package index that pip would use. Python is not needed to read it. */
export interface PackageIndex {
  /** Ends with a slash. */
  readonly url: string
  readonly headers: Record<string, string>
  /** A file with certificates to trust instead of the usual ones. */
  readonly certificates: string | undefined
}

const PUBLIC_INDEX = 'https://pypi.org/simple'

/** The nearest setting wins, as in pip: the environment, then the user's and the global pip.conf. */
export async function packageIndex(environment: NodeJS.ProcessEnv): Promise<PackageIndex> {
  const settings = new Map<string, string>()
  for (const file of configurationFiles(environment)) {
    for (const [name, value] of parsePipConf(await readOptional(file))) settings.set(name, value)
  }
  const chosen = environment['PIP_INDEX_URL'] ?? settings.get('index-url') ?? PUBLIC_INDEX
  const url = new URL(chosen.endsWith('/') ? chosen : `${chosen}/`)
  const headers = credentials(url)
  url.username = ''
  url.password = ''
  return { url: url.href, headers, certificates: environment['PIP_CERT'] ?? settings.get('cert') }
}

function configurationFiles(environment: NodeJS.ProcessEnv): string[] {
  const named = environment['PIP_CONFIG_FILE']
  const home = environment['HOME'] ?? homedir()
  return [
    '/etc/pip.conf',
    join(home, '.pip', 'pip.conf'),
    join(environment['XDG_CONFIG_HOME'] ?? join(home, '.config'), 'pip', 'pip.conf'),
    ...(named === undefined ? [] : [named]),
  ]
}

/** Only the sections that apply to a download count. `download` overrides `global`. */
function parsePipConf(text: string): [string, string][] {
  const bySection = { global: [] as [string, string][], download: [] as [string, string][] }
  let section = ''
  for (const line of text.split('\n')) {
    section = /^\s*\[(.+)\]\s*$/.exec(line)?.[1] ?? section
    const setting = /^([^#;=:\s]+)\s*[=:](.*)$/.exec(line.trim())
    if (!setting || (section !== 'global' && section !== 'download')) continue
    bySection[section].push([(setting[1] ?? '').replaceAll('_', '-'), (setting[2] ?? '').trim()])
  }
  return [...bySection.global, ...bySection.download]
}

function credentials({ username, password }: URL): Record<string, string> {
  if (username === '') return {}
  const plain = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(plain).toString('base64')}` }
}

async function readOptional(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    return ''
  }
}
