import { ApiError } from '../shared/errors.ts'
import type { Role } from '../shared/roles.ts'
import type { Exchange } from './exchange.ts'
import type { PathParameters, Route } from './route.ts'
import type { TObject, TSchema } from 'typebox'
import { findSchemaProblem, formatPath, invalidParameter, toApiError } from '../shared/json/schema-check.ts'

/** Finds the route for a request. */
export interface RouteTable<Entry extends Route> {
  find(method: string, path: string): Match<Entry>
  /** The routes at a path, whatever their methods. */
  at(path: string): readonly Entry[]
}

export type Match<Entry extends Route> =
  | { readonly kind: 'found'; readonly route: Entry; readonly parameters: PathParameters }
  | { readonly kind: 'wrong_method'; readonly allowed: string }
  | { readonly kind: 'unknown_path' }

/** One level of the path tree: the segments that may follow. */
interface Node<Entry> {
  readonly literals: Map<string, Node<Entry>>
  parameter: Node<Entry> | undefined
  /** Routes that take the rest of the path, from here on. */
  readonly rest: Leaf<Entry>[]
  /** Routes whose path ends here. */
  readonly ends: Leaf<Entry>[]
}

interface Leaf<Entry> {
  readonly route: Entry
  /** The names of its parameters, in the order of the path. */
  readonly names: readonly string[]
}

/** A route whose path matches, with the raw values of its parameters. */
interface Candidate<Entry> extends Leaf<Entry> {
  readonly values: readonly string[]
}

const NO_PARAMETERS: PathParameters = {}
const UNKNOWN_PATH = { kind: 'unknown_path' } as const

export function routeTable<Entry extends Route>(routes: readonly Entry[]): RouteTable<Entry> {
  const root = emptyNode<Entry>()
  for (const route of routes) insert(root, route)
  // Paths without parameters take one lookup. Almost all requests are for one of them.
  const exact = new Map<string, readonly Candidate<Entry>[]>()
  for (const { path } of routes) if (!path.includes('{')) exact.set(path, candidatesFor(root, path))

  const candidatesAt = (path: string): readonly Candidate<Entry>[] => exact.get(path) ?? candidatesFor(root, path)

  return {
    at: (path) => candidatesAt(path).map(({ route }) => route),
    find(method, path) {
      const candidates = candidatesAt(path)
      const found = candidates.find(({ route }) => takes(route, method))
      if (found) return { kind: 'found', route: found.route, parameters: parametersOf(found) }
      // A public route does not reveal itself to other methods: those are answered only after authentication.
      const guarded = candidates.filter(({ route }) => route.access !== 'open')
      const methods = new Set(guarded.map(({ route }) => route.method))
      return methods.size > 0 ? { kind: 'wrong_method', allowed: [...methods].join(', ') } : UNKNOWN_PATH
    },
  }
}

/** Refuses people whose roles are not among those of the route. */
export function requireRole({ roles = [] }: Route, held: readonly Role[]): void {
  if (roles.some((role) => held.includes(role))) return
  const words = (names: readonly Role[], and: string): string => names.map((it) => it.replace('_', ' ')).join(and)
  const needed = `This needs the role ${words(roles, ' or ')}.`
  const own = held.length === 0 ? 'You have no role here.' : `You have the role ${words(held, ' and ')}.`
  throw new ApiError('role_not_allowed', `${needed} ${own}`)
}

/** Answers a request that matches no route. */
export function refuseUnrouted(exchange: Exchange, match: Exclude<Match<Route>, { readonly kind: 'found' }>): void {
  const { method, path } = exchange
  if (match.kind === 'unknown_path') {
    throw new ApiError('unknown_url', `There is nothing at ${method} ${path.slice(0, 200)}. See /docs.`)
  }
  const { allowed } = match
  const error = new ApiError('method_not_allowed', `${method} is not allowed here. Use ${allowed}.`)
  exchange.sendError(error, { Allow: allowed })
}

function takes(route: Route, method: string): boolean {
  return route.method === method || (method === 'HEAD' && route.access === 'open' && route.method === 'GET')
}

function emptyNode<Entry>(): Node<Entry> {
  return { literals: new Map(), parameter: undefined, rest: [], ends: [] }
}

function insert<Entry extends Route>(root: Node<Entry>, route: Entry): void {
  const segments = route.path.split('/')
  const names = segments.filter((it) => it.startsWith('{')).map((it) => it.replaceAll(/[{}+]/g, ''))
  let node = root
  for (const segment of segments) {
    if (segment.endsWith('+}')) return void node.rest.push({ route, names })
    if (segment.startsWith('{')) node = node.parameter ??= emptyNode()
    else {
      const next = node.literals.get(segment) ?? emptyNode<Entry>()
      node.literals.set(segment, next)
      node = next
    }
  }
  node.ends.push({ route, names })
}

/** Every route that matches the path, the most literal first. No deeper than the longest path in the table. */
function candidatesFor<Entry>(root: Node<Entry>, path: string): readonly Candidate<Entry>[] {
  const found: Candidate<Entry>[] = []
  const collect = (leaves: readonly Leaf<Entry>[], values: readonly string[]): void => {
    for (const { route, names } of leaves) found.push({ route, names, values })
  }
  function visit(node: Node<Entry>, from: number, values: readonly string[]): void {
    if (from > path.length) return collect(node.ends, values)
    const slash = path.indexOf('/', from)
    const end = slash < 0 ? path.length : slash
    const segment = path.slice(from, end)
    const literal = node.literals.get(segment)
    if (literal) visit(literal, end + 1, values)
    if (node.parameter) visit(node.parameter, end + 1, [...values, segment])
    if (node.rest.length > 0) collect(node.rest, [...values, path.slice(from)])
  }
  visit(root, 0, [])
  return found
}

function parametersOf({ names, values }: Candidate<Route>): PathParameters {
  if (names.length === 0) return NO_PARAMETERS
  return Object.fromEntries(names.map((name, index) => [name, decoded(values[index] ?? '')]))
}

/** Text that is not valid percent-encoding stands for itself. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Reads the parameters in the schema. Only the first of several values counts, and unknown names are ignored. */
export function readQuery(schema: TObject | undefined, text: string): Readonly<Record<string, unknown>> {
  if (!schema) return {}
  const given = new URLSearchParams(text)
  const values: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties)) {
    const value = given.get(name)
    if (value !== null) values[name] = isNumeric(property) ? Number(value) : value
  }
  const problem = findSchemaProblem(schema, values)
  if (!problem) return values
  // Every value in a query is text, so there is no such thing as a wrong type.
  throw problem.kind === 'missing'
    ? toApiError(problem)
    : invalidParameter('invalid_value', formatPath(problem.path), problem.expected)
}

function isNumeric(schema: TSchema): boolean {
  return 'type' in schema && schema.type === 'integer'
}
