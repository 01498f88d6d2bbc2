import bash from 'highlight.js/lib/languages/bash'
import cpp from 'highlight.js/lib/languages/cpp'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import go from 'highlight.js/lib/languages/go'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import python from 'highlight.js/lib/languages/python'
import rust from 'highlight.js/lib/languages/rust'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { createLowlight } from 'lowlight'
import { lexer, type Token } from 'marked'

/**
 * The libraries behind Markdown and coloured code. Only the chat needs them, so they are a file of their own that loads
 * after the page. Both make trees: no text of a model ever becomes HTML.
 */

const languages = createLowlight({
  bash,
  cpp,
  css,
  diff,
  go,
  java,
  javascript,
  json,
  python,
  rust,
  sql,
  typescript,
  xml,
  yaml,
})

/** The blocks of a text, or nothing if it is nested too deeply to read. */
export function blocksOf(text: string): readonly Token[] | undefined {
  try {
    return lexer(text)
  } catch {
    return undefined
  }
}

export interface CodePart {
  readonly text: string
  /** Of the colour; empty for plain text. */
  readonly className: string
}

/** The code in the parts that are coloured; in one part if the language is not known. */
export function codeParts(code: string, language: string): readonly CodePart[] {
  if (!languages.registered(language)) return [{ text: code, className: '' }]
  return partsOf(languages.highlight(language, code).children, '')
}

type Nodes = ReturnType<typeof languages.highlight>['children']

function partsOf(nodes: Nodes, className: string): readonly CodePart[] {
  return nodes.flatMap((node) => {
    if (node.type === 'text') return [{ text: node.value, className }]
    if (node.type !== 'element') return []
    const own = node.properties['className']
    return partsOf(node.children, Array.isArray(own) ? own.join(' ') : className)
  })
}
