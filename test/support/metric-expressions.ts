import { metricTable } from '../../src/operate/telemetry/metric-table.ts'

/** What Prometheus adds to every series that it scrapes. */
const TARGET_LABELS = ['job', 'instance']

/**
 * Names in an expression that are no metric or record of a rule, and labels that its metrics do not have. `shown`: labels
 * that the text beside it shows.
 */
export function unknownNames(
  expression: string,
  { shown = [], records = [] }: { readonly shown?: readonly string[]; readonly records?: readonly string[] } = {},
): readonly string[] {
  const selectors = [...expression.matchAll(/\b((?:weir|gen_ai|process)[_:][\w:]+)(?:\{([^}]*)\})?/g)]
  const groups = [...expression.matchAll(/\bby \(([^)]*)\)/g)].map(([, names = '']) => names.split(/, */))
  const grouped = new Set(groups.flat())
  const metrics = selectors.filter(([, name = '']) => !grouped.has(name))
  const labelSets = metrics.map(([, name = '']) => labelsOf(name, records))
  const unknown = metrics.flatMap(([, name = '', matchers = ''], index) => {
    const known = labelSets[index]
    if (!known) return [name]
    return [...matchers.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].flatMap(([, label = '']) =>
      known.includes(label) ? [] : label,
    )
  })
  const ofAll = (label: string): boolean => labelSets.every((known) => known?.includes(label))
  const isAggregated = /\b(?:sum|min|max|avg)\b/.test(expression)
  const ofResult = (label: string): boolean => (isAggregated ? grouped.has(label) : ofAll(label))
  return [...unknown, ...[...grouped].filter((it) => !ofAll(it)), ...shown.filter((it) => !ofResult(it))]
}

/** undefined: there is no such metric. */
function labelsOf(name: string, records: readonly string[]): readonly string[] | undefined {
  if (records.includes(name)) return []
  const [, family = name, part] = /^(.*?)(?:_(bucket|count|sum))?$/.exec(name) ?? []
  const metric = family in metricTable ? metricTable[family as keyof typeof metricTable] : undefined
  if (!metric || (metric.type === 'histogram') !== (part !== undefined)) return undefined
  return [...metric.labels, ...TARGET_LABELS, ...(part === 'bucket' ? ['le'] : [])]
}
