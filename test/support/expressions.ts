import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkSync } from 'recheck'
import {
  isCallExpression,
  isIdentifier,
  isNewExpression,
  isNoSubstitutionTemplateLiteral,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isRegularExpressionLiteral,
  isStringLiteral,
  type Node,
} from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/sync'

/** A regular expression in a program. */
export interface Expression {
  /** The file and the line. */
  readonly place: string
  readonly source: string
  readonly flags: string
}

export interface FoundExpressions {
  readonly expressions: readonly Expression[]
  /** Where an expression is made of text that only the running program knows. */
  readonly computed: readonly string[]
}

/** Methods of strings that make an expression of a text. */
const compilingMethods = new Set(['match', 'matchAll', 'search'])

/** No check of an expression takes as long, except of one that is not worth understanding. */
const LONGEST_CHECK_MS = 300_000

/** The regular expressions in the files of a project that lie in some of its folders: literals, and the patterns of schemas. */
export function expressionsIn(project: string, folders: readonly string[]): FoundExpressions {
  const places = folders.map((folder) => join(project, folder, '/'))
  const expressions: Expression[] = []
  const computed: string[] = []
  const temporary = mkdtempSync(join(tmpdir(), 'weir-expressions-'))
  // Only what these folders have is parsed: without libraries, packages and the rest of the project.
  const config = join(temporary, 'tsconfig.json')
  const compilerOptions = { allowImportingTsExtensions: true, noEmit: true, noLib: true, noResolve: true, types: [] }
  writeFileSync(config, JSON.stringify({ compilerOptions, include: places }))
  const api = new API({ cwd: project })
  try {
    const { program } = api.updateSnapshot({ openProjects: [config] }).getProjects()[0]!
    for (const name of program.getSourceFileNames().filter((it) => places.some((place) => it.startsWith(place)))) {
      const file = program.getSourceFile(name)!
      const placeOf = (node: Node): string =>
        `${name.slice(project.length + 1)}:${file.text.slice(0, node.getStart(file)).split('\n').length}`
      const visit = (node: Node): void => {
        const literal = isRegularExpressionLiteral(node) ? node.text : undefined
        const pattern = patternOf(node)
        if (literal !== undefined) {
          const end = literal.lastIndexOf('/')
          expressions.push({ place: placeOf(node), source: literal.slice(1, end), flags: literal.slice(end + 1) })
        } else if (pattern !== undefined) expressions.push({ place: placeOf(node), source: pattern, flags: 'u' })
        else if (isComputed(node)) computed.push(placeOf(node))
        node.forEachChild(visit)
      }
      visit(file)
    }
  } finally {
    api.close()
    rmSync(temporary, { recursive: true })
  }
  return { expressions, computed }
}

/** The pattern that a schema has for a text. */
function patternOf(node: Node): string | undefined {
  return isPropertyAssignment(node) && node.name.getText() === 'pattern' ? textOf(node.initializer) : undefined
}

function textOf(node: Node): string | undefined {
  return isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node) ? node.text : undefined
}

function isComputed(node: Node): boolean {
  if (isPropertyAssignment(node) && node.name.getText() === 'pattern') {
    // `NAME.source` is the text of a literal, which is found where it stands.
    return !(isPropertyAccessExpression(node.initializer) && node.initializer.name.text === 'source')
  }
  if (!isCallExpression(node) && !isNewExpression(node)) return false
  const called = node.expression
  if (isIdentifier(called)) return called.text === 'RegExp'
  if (!isPropertyAccessExpression(called) || !compilingMethods.has(called.name.text)) return false
  const [argument] = node.arguments ?? []
  return argument !== undefined && !isRegularExpressionLiteral(argument) && !isIdentifier(argument)
}

/**
 * How the time of an expression grows with its text, and a text that shows it; undefined where it grows no faster than the
 * text. Steps are counted, so the speed of the machine does not matter.
 */
export function growthOf({ source, flags }: Pick<Expression, 'source' | 'flags'>): string | undefined {
  // The other backends are programs for some platforms only.
  process.env['RECHECK_SYNC_BACKEND'] = 'pure'
  const found = checkSync(source, flags, {
    attackLimit: 100_000_000,
    timeout: LONGEST_CHECK_MS,
    attackTimeout: null,
    incubationTimeout: null,
    seedingTimeout: null,
  })
  switch (found.status) {
    case 'safe':
      return undefined
    case 'vulnerable':
      return `${found.complexity.summary}: ${found.attack.pattern}`
    case 'unknown':
      return `cannot be checked: ${found.error.kind}`
  }
}
