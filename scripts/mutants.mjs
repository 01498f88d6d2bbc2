// Makes mutants of the sources: small changes that a test should notice. TypeScript's own parser finds the places, and
// its checker leaves out what would not compile. Lua scripts and SQL in strings have rules on their text.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SyntaxKind } from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/sync'
import { root } from './bootstrap.mjs'

const OPERATORS = {
  '<': ['<='],
  '<=': ['<'],
  '>': ['>='],
  '>=': ['>'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '&&': ['||'],
  '||': ['&&'],
  '===': ['!=='],
  '!==': ['==='],
  '+=': ['-='],
  '-=': ['+='],
  '??=': ['='],
}
/** Operators of which one side is left out. */
const ONE_SIDED = new Set(['??', '|', '&', '&&', '||'])
const METHODS = {
  min: 'max',
  max: 'min',
  floor: 'ceil',
  ceil: 'floor',
  some: 'every',
  every: 'some',
  push: 'unshift',
  shift: 'pop',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  indexOf: 'lastIndexOf',
  find: 'findLast',
  findLast: 'find',
  trimStart: 'trimEnd',
  trimEnd: 'trimStart',
  setImmediate: 'queueMicrotask',
}
/** A call that ends something: an event, a connection, a wait, a hold on something that is limited. */
const RELEASE =
  /\b(close|end|release|abort|clear|remove|delete|off|destroy|stop|unref|f?sync|rm|unlink|rename|disconnect|cancel|forget|drain|leave|kill|discard|drop|unsubscribe|rollback|free|flush|reset|invalidate)[A-Za-z]*\(/i
/** Properties that bound something, and headers. */
const LIMIT_OR_HEADER =
  /^(max(?!Length|imum|Items|Properties)[A-Z]\w*|signal|flags?|headers|\w*(Timeout|timeout|deadline|Deadline)|[\w-]+-[\w-]+)$/
const SQL = /\b(SELECT|INSERT|UPDATE|DELETE|WHERE|ORDER BY|LIMIT|CREATE)\b/
const SQL_RULES = [
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/ AND /g, ' OR '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/ DESC\b/g, ' ASC'],
  [/ IS NULL\b/g, ' IS NOT NULL'],
  [/ IS NOT NULL\b/g, ' IS NULL'],
  [/\bMIN\(/g, 'MAX('],
  [/\bMAX\(/g, 'MIN('],
  [/ DISTINCT\b/g, ''],
]
const LUA_RULES = [
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/ == /g, ' ~= '],
  [/ ~= /g, ' == '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/ and /g, ' or '],
  [/ or /g, ' and '],
  [/\bnot /g, ''],
  [/\bmath\.min\b/g, 'math.max'],
  [/\bmath\.max\b/g, 'math.min'],
  // A statement of one line.
  [/^ *(?:redis\.call\(.*\)|[\w.[\]]+ = [^{]*[^{,])$/gm, ''],
]

/** Shorter lists of numbers are settings. */
const TABLE_LENGTH_MIN = 6

/**
 * The mutants of the files below the folders (or of single files), in an order that depends on the seed and on each
 * mutant alone: a change elsewhere in the tree does not change the sample.
 */
export function mutantsOf(paths, seed, directory = root) {
  const checker = typeChecker(directory)
  const mutants = paths.flatMap((path) => {
    const seen = new Map()
    const text = readFileSync(join(directory, path), 'utf8')
    const edits = path.endsWith('.lua') ? textEdits(text, 0, LUA_RULES, 'lua') : editsOf(checker.parse(path), text)
    return edits.map((edit) => {
      const { before, after } = linesOf(text, edit)
      // The same change of the same line may occur more than once in a file.
      const same = `${path} ${before} ${after}`
      const nth = seen.get(same) ?? 0
      seen.set(same, nth + 1)
      const id = digest(`${same} ${nth}`).slice(0, 10)
      const line = text.slice(0, edit.start).split('\n').length
      return { id, file: path, line, before, after, order: digest(`${seed} ${id}`), ...edit }
    })
  })
  mutants.sort((a, b) => (a.order < b.order ? -1 : 1))
  return { mutants, compiles: checker.compiles, close: checker.close }
}

const digest = (text) => createHash('sha256').update(text).digest('hex')

/** Every source file that may have mutants. */
export function sourceFiles() {
  return (
    ['src', 'packages']
      .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((file) => join(folder, file)))
      .filter((file) => /\.(ts|lua)$/.test(file))
      // Tests, and names, sizes and hashes of published files.
      .filter((file) => !/^packages\/[^/]+\/(test|manifest|node_modules)\//.test(file))
      .sort()
  )
}

export function mutatedText(text, { start, end, replacement }) {
  return text.slice(0, start) + replacement + text.slice(end)
}

/** The whole lines that a mutant changes, as they were and as they are, without indentation. */
function linesOf(text, { start, end, replacement }) {
  const from = text.lastIndexOf('\n', start - 1) + 1
  const next = text.indexOf('\n', end)
  const to = next === -1 ? text.length : next
  const compact = (lines) => lines.replaceAll(/\s+/g, ' ').trim()
  return {
    before: compact(text.slice(from, to)),
    after: compact(text.slice(from, start) + replacement + text.slice(end, to)),
  }
}

/** Parses files, and says whether a mutant passes the type checker, in its own file and in those that import it. */
function typeChecker(directory) {
  const changed = new Map()
  const api = new API({ cwd: directory, fs: { readFile: (file) => changed.get(file) } })
  const config = join(directory, 'tsconfig.json')
  const importers = importersOfSources()
  let project = api.updateSnapshot({ openProjects: [config] }).getProject(config)
  let file = ''
  return {
    parse: (path) => project.program.getSourceFile(join(directory, path)),
    compiles(mutant) {
      if (mutant.file.endsWith('.lua')) return true
      const previous = file
      file = join(directory, mutant.file)
      changed.clear()
      changed.set(file, mutatedText(readFileSync(file, 'utf8'), mutant))
      project = api.updateSnapshot({ fileChanges: { changed: [previous, file] } }).getProject(config)
      const { program } = project
      return [file, ...(importers.get(file) ?? [])].every(
        (it) => program.getSyntacticDiagnostics(it).length === 0 && program.getSemanticDiagnostics(it).length === 0,
      )
    },
    close: () => api.close(),
  }
}

/** Source file → the source files that import it. The type of an export may be inferred, so a mutant may not suit them. */
function importersOfSources() {
  const importers = new Map()
  for (const importer of sourceFiles().map((file) => join(root, file))) {
    for (const [, path] of readFileSync(importer, 'utf8').matchAll(/ from '(\.[^']+)'/g)) {
      const file = join(dirname(importer), path)
      importers.set(file, [...(importers.get(file) ?? []), importer])
    }
  }
  return importers
}

function textEdits(text, offset, rules, kind) {
  return rules.flatMap(([pattern, replacement]) =>
    Array.from(text.matchAll(pattern), (match) => ({
      kind,
      start: offset + match.index,
      end: offset + match.index + match[0].length,
      replacement,
    })).filter((edit) => !isLuaComment(text, edit.start - offset)),
  )
}

function isLuaComment(text, index) {
  return text.slice(text.lastIndexOf('\n', index - 1) + 1, index).includes('--')
}

/** The edits of a TypeScript file. `within` names the function or the constant around a place. */
function editsOf(sourceFile, text) {
  const edits = []
  const textOf = (node) => text.slice(node.getStart(sourceFile), node.end)

  function visit(node, place) {
    if (isTypeOnly(node) || isLogging(node, textOf) || isNote(node, textOf) || isForPeople(node) || isTable(node))
      return
    const named = nameOf(node, place.top)
    const here = named ? { within: named, top: false, topName: place.topName ?? named } : place
    const inner = isFunction(node) ? { ...here, top: false, inFunction: true } : here
    const add = (kind, start, end, replacement) => {
      if (text.slice(start, end) === replacement) return
      edits.push({
        kind,
        start,
        end,
        replacement,
        within: inner.within,
        top: inner.inFunction ? undefined : inner.topName,
      })
    }
    const replace = (kind, target, replacement) => add(kind, target.getStart(sourceFile), target.end, replacement)
    mutate(node, { add, replace, textOf, sourceFile, text })
    node.forEachChild((child) => visit(child, { ...inner, top: node.kind === SyntaxKind.SourceFile }))
  }
  sourceFile.forEachChild((node) => visit(node, { top: true }))
  return edits
}

function isTypeOnly({ kind }) {
  return (
    kind === SyntaxKind.ImportDeclaration ||
    kind === SyntaxKind.ExportDeclaration ||
    kind === SyntaxKind.InterfaceDeclaration ||
    kind === SyntaxKind.TypeAliasDeclaration ||
    (kind >= SyntaxKind.FirstTypeNode && kind <= SyntaxKind.LastTypeNode)
  )
}

/** What is logged for people is left alone. */
function isLogging(node, textOf) {
  return node.kind === SyntaxKind.CallExpression && /(^|[.])(log|logger)(\?)?\.\w+$/.test(textOf(node.expression))
}

/** A statement that only logs what went well. A warning or an error that is missing is a fault. */
function isNote(node, textOf) {
  return node.kind === SyntaxKind.ExpressionStatement && /^(\w+\.)*log(ger)?\??\.(debug|info)\(/.test(textOf(node))
}

/** Examples and descriptions of the API, help texts, titles of columns, and the cause of an error, which only the log shows. */
function isForPeople({ kind, name, parent }) {
  return (
    (kind === SyntaxKind.ObjectLiteralExpression && /^(jsonResponse|spreadSchema)$/.test(parent.expression?.text)) ||
    (kind === SyntaxKind.ShorthandPropertyAssignment && name.text === 'cause') ||
    ((kind === SyntaxKind.VariableDeclaration || kind === SyntaxKind.FunctionDeclaration) &&
      /(Example|^HELP|[hH]elp)$/.test(name.text ?? '')) ||
    (kind === SyntaxKind.PropertyAssignment &&
      /^(description|summary|examples?|help|cause|title)$/.test(name.text ?? ''))
  )
}

/** Measured or published values, such as the tokens of a tokenizer. A test could only repeat them. */
function isTable(node) {
  const values = node.kind === SyntaxKind.ArrayLiteralExpression ? node.elements : []
  return values.length >= TABLE_LENGTH_MIN && values.every(({ kind }) => kind === SyntaxKind.NumericLiteral)
}

function isFunction({ kind }) {
  return (
    kind === SyntaxKind.FunctionDeclaration ||
    kind === SyntaxKind.FunctionExpression ||
    kind === SyntaxKind.ArrowFunction ||
    kind === SyntaxKind.MethodDeclaration ||
    kind === SyntaxKind.Constructor ||
    kind === SyntaxKind.GetAccessor ||
    kind === SyntaxKind.SetAccessor
  )
}

function nameOf(node, atTop) {
  const isNamed =
    node.kind === SyntaxKind.FunctionDeclaration ||
    node.kind === SyntaxKind.MethodDeclaration ||
    node.kind === SyntaxKind.ClassDeclaration ||
    (node.kind === SyntaxKind.VariableDeclaration && (atTop || isFunction(node.initializer ?? node))) ||
    (node.kind === SyntaxKind.VariableDeclaration && node.parent?.parent?.parent?.kind === SyntaxKind.SourceFile)
  return isNamed ? node.name?.text : undefined
}

/** The changes at one node of the syntax tree, without those of its parts. */
function mutate(node, { add, replace, textOf, sourceFile }) {
  const start = node.getStart(sourceFile)
  switch (node.kind) {
    case SyntaxKind.BinaryExpression: {
      const operator = textOf(node.operatorToken)
      for (const other of OPERATORS[operator] ?? []) replace('operator', node.operatorToken, other)
      if (!ONE_SIDED.has(operator)) break
      replace('operand', node, textOf(node.left))
      replace('operand', node, textOf(node.right))
      break
    }
    case SyntaxKind.PrefixUnaryExpression: {
      const operator = textOf(node)[0]
      if (operator === '!' || operator === '-') replace('operator', node, textOf(node.operand))
      if (textOf(node).startsWith('++')) add('operator', start, start + 2, '--')
      if (textOf(node).startsWith('--')) add('operator', start, start + 2, '++')
      break
    }
    case SyntaxKind.PostfixUnaryExpression:
      add('operator', node.end - 2, node.end, textOf(node).endsWith('++') ? '--' : '++')
      break
    case SyntaxKind.NumericLiteral: {
      if (isNeverUsed(node, textOf)) break
      const value = Number(textOf(node).replaceAll('_', ''))
      const setting = settingOf(node)
      const kind = setting ? 'limit' : 'constant'
      // A timer that is a little late, or a buffer that is a byte longer, is no fault.
      // An order is not more than after: `one < other ? -1 : 1`.
      const isOrder = [node.parent, node.parent.parent].some(
        (it) => it?.kind === SyntaxKind.ConditionalExpression && textOf(it).endsWith('? -1 : 1'),
      )
      if (value < 100 && !isOrder && !/_(MS|SECONDS|MINUTES|HOURS|DAYS)$/.test(setting))
        replace(kind, node, String(value + 1))
      if (value > 1) replace(kind, node, String(value * 1000))
      if (value === 1) replace(kind, node, '0')
      break
    }
    case SyntaxKind.BigIntLiteral:
      replace('constant', node, `${BigInt(textOf(node).slice(0, -1).replaceAll('_', '')) + 1n}n`)
      break
    case SyntaxKind.TrueKeyword:
      replace('constant', node, 'false')
      break
    case SyntaxKind.FalseKeyword:
      replace('constant', node, 'true')
      break
    case SyntaxKind.StringLiteral:
    case SyntaxKind.NoSubstitutionTemplateLiteral:
      if (isNeverUsed(node, textOf)) break
      mutateText(node, { add, replace, textOf, start })
      break
    case SyntaxKind.TemplateExpression:
      if (SQL.test(textOf(node)))
        for (const it of sqlEdits(textOf(node), start)) add('sql', it.start, it.end, it.replacement)
      break
    case SyntaxKind.IfStatement:
    case SyntaxKind.WhileStatement:
      replace('condition', node.expression, `!(${textOf(node.expression)})`)
      if (node.kind === SyntaxKind.IfStatement && !node.elseStatement) replace('statement', node, ';')
      break
    case SyntaxKind.ConditionalExpression:
      replace('condition', node.condition, `!(${textOf(node.condition)})`)
      break
    case SyntaxKind.Block:
      swapStatements(node.statements, { add, textOf, sourceFile })
      break
    case SyntaxKind.ExpressionStatement:
      replace(RELEASE.test(textOf(node)) ? 'release' : 'statement', node, ';')
      break
    case SyntaxKind.ThrowStatement:
    case SyntaxKind.BreakStatement:
    case SyntaxKind.ContinueStatement:
      replace('statement', node, ';')
      break
    case SyntaxKind.AwaitExpression:
      // The linter refuses a promise that nothing waits for.
      if (node.parent.kind !== SyntaxKind.ExpressionStatement) replace('await', node, textOf(node.expression))
      break
    case SyntaxKind.CatchClause:
      if (node.block.statements.length > 0) replace('block', node.block, '{}')
      break
    case SyntaxKind.TryStatement:
      if (node.finallyBlock) replace('block', node.finallyBlock, '{}')
      break
    case SyntaxKind.CallExpression:
    case SyntaxKind.NewExpression:
      mutateCall(node, { replace, add, textOf, sourceFile })
      break
    case SyntaxKind.ObjectLiteralExpression:
      for (const property of node.properties) {
        if (isForPeople(property)) continue
        const isLast = property === node.properties.at(-1)
        const comma = isLast ? '' : ','
        const kind = LIMIT_OR_HEADER.test(property.name?.text ?? '') ? 'limit' : 'property'
        add(kind, property.getStart(sourceFile), property.end + comma.length, '')
      }
      break
    default:
  }
}

/** A value that only satisfies the type checker. An index that nothing around it compares with the length is no such. */
function isNeverUsed(node, textOf) {
  const { parent } = node
  // `const [name = ''] = …`: there is a name.
  if (parent.parent?.kind === SyntaxKind.ArrayBindingPattern) return true
  if (parent.kind !== SyntaxKind.BinaryExpression || textOf(parent.operatorToken) !== '??') return false
  if (parent.right !== node) return false
  const left = textOf(parent.left)
  // A character has a first code point, and a text has a first line.
  if (/^character\.codePointAt\(0\)$|\.split\('.+', 1\)\[0\]$/.test(left)) return true
  if (parent.left.kind !== SyntaxKind.ElementAccessExpression) return false
  const within = `${textOf(parent.left.argumentExpression)} < ${textOf(parent.left.expression)}.length`
  for (let it = parent; it && !isFunction(it); it = it.parent)
    if (it.kind === SyntaxKind.ForStatement && textOf(it.condition ?? it) === within) return true
  return false
}

/** Words for people hold spaces and are left alone, and so are names of events; other names, codes and SQL are not. */
function mutateText(node, { add, replace, textOf, start }) {
  const text = textOf(node)
  if (
    node.parent.kind === SyntaxKind.CallExpression &&
    /(^|\.)(on|once|off|emit)$/.test(textOf(node.parent.expression))
  )
    return
  if (SQL.test(text)) for (const it of sqlEdits(text, start)) add('sql', it.start, it.end, it.replacement)
  else if (node.parent.kind !== SyntaxKind.PropertyAssignment || node.parent.name !== node) {
    if (text.length === 2) replace('constant', node, "'x'")
    else if (!/\s/.test(text)) replace('constant', node, "''")
  }
}

/** The constant of a module, named in capitals, that holds the number: `TRIES_MAX`. */
function settingOf({ parent }) {
  let node = parent
  while (node && !isFunction(node) && node.kind !== SyntaxKind.VariableDeclaration) node = node.parent
  const name = node?.kind === SyntaxKind.VariableDeclaration ? node.name.text : undefined
  return name && /^[A-Z][A-Z_\d]+$/.test(name) ? name : undefined
}

/** What waits and the statement beside it in the other order: sent before it is stored, stored before it is checked. */
function swapStatements(statements, { add, textOf, sourceFile }) {
  for (const [index, statement] of statements.entries()) {
    const next = statements[index + 1]
    if (next === undefined || ![statement, next].some((it) => isAwaited(it))) continue
    if (![statement, next].every(({ kind }) => kind === SyntaxKind.ExpressionStatement)) continue
    const between = textOf({ getStart: () => statement.end, end: next.getStart(sourceFile) })
    add('order', statement.getStart(sourceFile), next.end, textOf(next) + between + textOf(statement))
  }
}

function isAwaited({ expression }) {
  return expression?.kind === SyntaxKind.AwaitExpression
}

function sqlEdits(text, start) {
  return textEdits(text, start, SQL_RULES, 'sql')
}

function mutateCall(node, { replace, add, textOf, sourceFile }) {
  const name = node.expression.kind === SyntaxKind.PropertyAccessExpression ? node.expression.name : node.expression
  const other = name.kind === SyntaxKind.Identifier ? METHODS[textOf(name)] : undefined
  if (other) replace('method', name, other)
  // The order makes no difference to these.
  if (/^Math\.(min|max|imul)$/.test(textOf(node.expression))) return
  const list = node.arguments ?? []
  for (const [index, argument] of list.entries()) {
    const next = list[index + 1]
    if (!next) continue
    // Functions and objects are rarely mistaken for each other.
    if ([argument, next].some((it) => isFunction(it) || it.kind === SyntaxKind.ObjectLiteralExpression)) continue
    const between = textOf({ getStart: () => argument.end, end: next.getStart(sourceFile) })
    add('arguments', argument.getStart(sourceFile), next.end, textOf(next) + between + textOf(argument))
  }
}
