/** The metrics of several processes in one text. Every sample gets a label that identifies its process. */
export function mergedMetrics(label: string, texts: ReadonlyMap<string, string>): string {
  const blocks = new Map<string, { readonly head: Set<string>; readonly samples: string[] }>()
  for (const [process, text] of texts) {
    const added = `${label}="${process}"`
    let block: { readonly head: Set<string>; readonly samples: string[] } | undefined
    for (const line of text.split('\n')) {
      if (line.startsWith('# ')) {
        const name = line.split(' ', 3)[2] ?? ''
        block = blocks.get(name) ?? { head: new Set(), samples: [] }
        blocks.set(name, block)
        block.head.add(line)
      } else if (line !== '') block?.samples.push(labelled(line, added))
    }
  }
  return [...blocks.values()].map(({ head, samples }) => `${[...head, ...samples].join('\n')}\n`).join('')
}

/** `name{a="b"} 1` or `name 1`. */
function labelled(line: string, added: string): string {
  const end = line.search(/[{ ]/)
  const rest = line.slice(end)
  return `${line.slice(0, end)}{${added}${rest.startsWith('{') ? `,${rest.slice(1)}` : `}${rest}`}`
}
