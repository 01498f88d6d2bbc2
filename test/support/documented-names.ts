/** Finds in a document the names of one kind. What they should name is up to the test. */
export interface DocumentedName {
  readonly line: number
  readonly name: string
}

interface Code {
  readonly line: number
  readonly text: string
  readonly isBlock: boolean
}

/** What a document sets as code: a span, or a line of a block. It may name what is gone: `old.ts` (removed). */
function codeIn(text: string): readonly Code[] {
  let isBlock = false
  return text.split('\n').flatMap((content, index): readonly Code[] => {
    const line = index + 1
    if (/^\s*```/.test(content)) {
      isBlock = !isBlock
      return []
    }
    if (isBlock) return [{ line, text: content, isBlock: true }]
    return [...content.matchAll(/`([^`]+)`(?! \(removed\))/g)].map(([, span = '']) => ({
      line,
      text: span,
      isBlock: false,
    }))
  })
}

export function proseIn(text: string): readonly DocumentedName[] {
  let isBlock = false
  return text.split('\n').flatMap((content, index) => {
    if (/^\s*```/.test(content)) isBlock = !isBlock
    return isBlock ? [] : [{ line: index + 1, name: content }]
  })
}

function matches(text: string, pattern: RegExp): readonly DocumentedName[] {
  return codeIn(text).flatMap(({ line, text: code }) =>
    [...code.matchAll(pattern)].map((match) => ({ line, name: match[1] ?? match[0] })),
  )
}

const spans = (text: string, pattern: RegExp): readonly DocumentedName[] =>
  codeIn(text).flatMap(({ line, text: code, isBlock }) =>
    !isBlock && pattern.test(code) ? [{ line, name: code }] : [],
  )

const FOLDERS = [
  'src',
  'test',
  'docs',
  'bench',
  'scripts',
  'examples',
  'packages',
  'console',
  'deploy',
  '.ci',
  '.github',
]
const PATH = new RegExp(`(?<![\\w/.@:~-])((?:${FOLDERS.join('|').replaceAll('.', '\\.')})/[^\\s'"\`),;|:]*)`, 'g')

/** Paths from the root of the repository, up to their first placeholder: src/inference/<name>/job.ts → src/inference. */
export function pathsIn(text: string): readonly DocumentedName[] {
  return matches(text, PATH).map(({ line, name }) => {
    const segments = name.replace(/\.$/, '').split('/')
    const unknown = segments.findIndex((segment) => /[<*…{$]/.test(segment))
    return { line, name: (unknown < 0 ? segments : segments.slice(0, unknown)).join('/') }
  })
}

/** Files of the source, named without the folder they are in. */
export const sourceFilesIn = (text: string): readonly DocumentedName[] =>
  spans(text, /^(?!NAME)[\w./-]+\.(?:ts|tsx|mjs|sql|lua)$/)

/** Folders of the source, such as `ledger/queries/`. */
export const foldersIn = (text: string): readonly DocumentedName[] =>
  spans(text, /^[\w.-]+(?:\/[\w.-]+)*\/$/).map(({ line, name }) => ({ line, name: name.slice(0, -1) }))

export const scriptsIn = (text: string): readonly DocumentedName[] => matches(text, /\bnpm run ([\w:]+)/g)

export const benchesIn = (text: string): readonly DocumentedName[] => matches(text, /\bnpm run bench -- ([a-z][\w-]*)/g)

export interface DocumentedCommand extends DocumentedName {
  readonly words: readonly string[]
  readonly flags: readonly string[]
}

/** `weir keys create --workspace W`: its words in lower case, and its flags. */
export function weirCommandsIn(text: string): readonly DocumentedCommand[] {
  return matches(text, /(?<![\w/.:-])weir ([a-z][^`|;&#]*)/g).map(({ line, name }) => {
    const parts = name.split(/\s+/)
    const end = parts.findIndex((part) => !/^[a-z]+$/.test(part))
    return {
      line,
      name: `weir ${name.trim()}`,
      words: end < 0 ? parts : parts.slice(0, end),
      flags: parts.filter((part) => part.startsWith('--')).map((part) => part.replace(/[=,.].*$/, '')),
    }
  })
}

/** Keys of weir.yaml with their section, such as `server.drain_ms`, unless they look like the name of a file. */
export const settingsIn = (text: string): readonly DocumentedName[] =>
  spans(text, /^(?!.*\.(?:ts|json|yaml|lua|sql)$)[a-z_]+(?:\[\])?(?:\.[a-z_]+(?:\[\])?)+$/)

export const flagsIn = (text: string): readonly DocumentedName[] => spans(text, /^--[a-z-]+$/)

/** Functions of the source: `prepareChat`. */
export const functionsIn = (text: string): readonly DocumentedName[] => spans(text, /^[a-z]+(?:[A-Z][a-z0-9]+)+$/)

/** Settings, fields, codes and columns: `max_queue_depth`. Metrics are a kind of their own. */
export const identifiersIn = (text: string): readonly DocumentedName[] =>
  spans(text, /^(?!weir_)[a-z]+(?:_[a-z0-9]+)+$/)

export const metricsIn = (text: string): readonly DocumentedName[] => matches(text, /\b(weir_[a-z_]+)\b(?!…)/g)

export const variablesIn = (text: string): readonly DocumentedName[] => matches(text, /\b(WEIR_[A-Z_]+)\b/g)

/** `404 `not_found``, as every page writes it. */
export function errorCodesIn(text: string): readonly DocumentedName[] {
  return proseIn(text).flatMap(({ line, name }) =>
    [...name.matchAll(/\b[45]\d\d (?:with )?`([a-z_]+)`/g)].map(([, code = '']) => ({ line, name: code })),
  )
}

/** Requests to Weir itself: with their method, or below the path of one of its APIs. */
export const routesIn = (text: string): readonly DocumentedName[] => [
  ...matches(text, /^((?:GET|POST|PUT|PATCH|DELETE) \/[\w/{}+.-]*)/g),
  ...matches(text, /(?<![\w.-])(?:https?:\/\/[\w.:$-]+|\$WEIR_URL)?(\/(?:api|admin)\/v1\/[\w/{}+.-]+)/g),
]

/** Texts in quotes of which a page says that the log or the service writes them. */
export function messagesIn(text: string): readonly DocumentedName[] {
  const flat = proseIn(text)
  const whole = flat.map(({ name }) => name).join('\n')
  const quoted = whole.matchAll(
    /\b(?:logs?|says?|message|line|400|503)\b[^"`]{0,40}"([^"]+)"|"([^"]+)" in the log|and later "([^"]+)"/g,
  )
  return [...quoted].map((match) => ({
    line: flat[whole.slice(0, match.index).split('\n').length - 1]?.line ?? 0,
    name: (match[1] ?? match[2] ?? match[3] ?? '').replaceAll(/\s+/g, ' '),
  }))
}

/** The tree that a block draws: two spaces for each level, names, then two spaces or more and what is there. */
export function treeIn(text: string): readonly DocumentedName[] {
  const folders: string[] = []
  return codeIn(text).flatMap(({ line, text: content, isBlock }) => {
    const [, indent = '', names = ''] = /^( *)(\S+(?: \S+)*)(?: {2,}|$)/.exec(content) ?? []
    const parts = names.split(' ')
    const isTree = isBlock && parts.every((part) => /^[\w.-]+(?:\/|\.ts)$/.test(part))
    if (!isTree) return []
    const level = indent.length / 2
    const paths = parts.map((part) => [...folders.slice(0, level), part.replace(/\/$/, '')].join('/'))
    folders.splice(level, Infinity, parts.at(-1)?.replace(/\/$/, '') ?? '')
    return paths.map((name) => ({ line, name }))
  })
}

/** What was measured looks like this: a number with a unit of a measurement. */
const MEASURED = /\d(?: ?(?:×|µs|ns|tokens\/s)|[\d.,–]* (?:times|s\b|ms|MB|KB|GB|MiB|%|(?:tokens|requests) a second))/

const IS_MEASURED =
  /\bMeasured\b|\bmeasured (?:on|with|by|at|there)\b|\bnpm run bench\b|\bmedians?\b|\d ?(?:×|µs)(?! \d)/

/** Paragraphs that say that they measured something, outside of the blocks that are written from docs/figures.json. */
export function measuredProseIn(text: string): readonly DocumentedName[] {
  let line = 1
  const plain = text.replaceAll(/<!-- figures: .*?<!-- \/figures -->/gs, (block) => block.replaceAll(/[^\n]/g, ''))
  return plain.split(/(\n\n+)/).flatMap((paragraph) => {
    const start = line
    line += paragraph.split('\n').length - 1
    const isMeasured = IS_MEASURED.test(paragraph)
    const [figure] = MEASURED.exec(paragraph) ?? []
    return isMeasured && figure !== undefined && !paragraph.startsWith('```') ? [{ line: start, name: figure }] : []
  })
}
