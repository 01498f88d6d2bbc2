// What was measured is in docs/figures.json: every figure with the run that measured it. The documentation shows figures in
// blocks between `<!-- figures: NAME -->` and `<!-- /figures -->`, which `npm run references` writes from that file.
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { arch, availableParallelism, cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { root } from './bootstrap.mjs'
import { figureBlocks } from './figure-blocks.mjs'

const FILE = join(root, 'docs', 'figures.json')
const BLOCK = /(<!-- figures: (\S+) -->\n).*?(<!-- \/figures -->)/gs

export const readFigures = () => JSON.parse(readFileSync(FILE, 'utf8'))

/** The documents that show figures, by path, as they should be. oxfmt has not aligned their tables yet. */
export function documentsWithFigures() {
  const blocks = figureBlocks(readFigures())
  const pages = readdirSync(join(root, 'docs'), { recursive: true }).filter((name) => name.endsWith('.md'))
  const files = ['README.md', ...pages.map((name) => join('docs', name))]
  const written = files.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    const filled = text.replaceAll(BLOCK, (_, start, name, end) => {
      if (!blocks[name])
        throw new Error(`${file} has the block "${name}", which scripts/figure-blocks.mjs does not know`)
      return `${start}\n${blocks[name]()}\n\n${end}`
    })
    return filled === text ? [] : [[file, filled]]
  })
  return Object.fromEntries(written)
}

export function writeDocumentsWithFigures() {
  const documents = documentsWithFigures()
  for (const [file, text] of Object.entries(documents)) writeFileSync(join(root, file), text)
  format(Object.keys(documents))
}

/** A line for each run and figure, so that a difference between two versions of the file can be read. */
export function layout({ runs, figures }) {
  const lines = (entries) =>
    Object.entries(entries).map(([name, it]) => `${JSON.stringify(name)}: ${JSON.stringify(it)}`)
  return `{\n"runs": {\n${lines(runs).join(',\n')}\n},\n"figures": {\n${lines(figures).join(',\n')}\n}\n}\n`
}

/** Takes over what a benchmark has left in `file`, and writes the documents that show it. */
export function publish(bench, command, file) {
  const run = {
    date: new Date().toISOString().slice(0, 10),
    commit: commit(),
    machine: machine(),
    how: `\`${command}\``,
  }
  writeFileSync(FILE, layout(withResults(readFigures(), bench, run, readFileSync(file, 'utf8'))))
  format([FILE])
  writeDocumentsWithFigures()
  console.log(`docs/figures.json has the figures of ${command}`)
}

/** `results` has a line for each figure: its name and its content. A run of which no figure is left goes. */
export function withResults({ runs, figures }, bench, run, results) {
  const name = `${bench} ${run.date}`
  const added = results
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map(([figure, content]) => [`${bench}.${figure}`, { run: name, ...content }])
  const all = { ...figures, ...Object.fromEntries(added) }
  const used = new Set(Object.values(all).map((it) => it.run))
  const kept = Object.entries({ ...runs, [name]: run }).filter(([it]) => used.has(it))
  return { runs: Object.fromEntries(kept), figures: all }
}

function commit() {
  const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  const hasChanges = git('status', '--porcelain', '--untracked-files=no') !== ''
  return git('rev-parse', '--short=8', 'HEAD') + (hasChanges ? ', with changes' : '')
}

function machine() {
  const [{ model } = { model: 'an unknown processor' }] = cpus()
  return `${availableParallelism()} cores of ${model} (${arch()}), under a load of ${loadavg()[0]?.toFixed(1)}`
}

function format(files) {
  if (files.length > 0) spawnSync(join(root, 'node_modules', '.bin', 'oxfmt'), files, { cwd: root })
}
