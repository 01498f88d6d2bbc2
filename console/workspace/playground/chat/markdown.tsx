import type { Token, Tokens } from 'marked'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { CodeBlock } from './code-block.tsx'
import { library } from './library.ts'

/**
 * Markdown as elements. Nothing in it becomes HTML: tags are shown as text, links lead only to web and mail addresses,
 * and images are links, because the page loads nothing from other sites.
 */
export function Markdown({ text }: { text: string }) {
  const loaded = library.value
  const blocks = useMemo(() => loaded?.blocksOf(text), [loaded, text])
  if (!blocks) return <p class="answer-text">{text}</p>
  return (
    <div class="markdown">
      {blocks.map((token, index) => (
        <Block key={index} token={token} />
      ))}
    </div>
  )
}

/** While an answer grows, only its last block changes. The others stay as they are. */
function Block({ token }: { token: Token }) {
  return useMemo(() => <>{nodeOf(token, 0)}</>, [token.raw])
}

/** Deeper than real text. Anything nested deeper is shown as plain source text. */
const DEPTH_MAX = 24

function nodesOf(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token) => nodeOf(token, depth + 1))
}

function nodeOf(token: Token, depth: number): ComponentChildren {
  if (depth > DEPTH_MAX) return token.raw
  const children = (): ComponentChildren => nodesOf((token as { tokens?: Token[] }).tokens, depth)
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading': {
      // The page and the answer have headings above it.
      const Heading = `h${Math.min(6, (token as Tokens.Heading).depth + 2)}` as 'h3'
      return <Heading>{children()}</Heading>
    }
    case 'paragraph':
      return <p>{children()}</p>
    case 'blockquote':
      return <blockquote>{children()}</blockquote>
    case 'hr':
      return <hr />
    case 'code': {
      const { text, lang = '' } = token as Tokens.Code
      return <CodeBlock code={text} language={lang.trim().split(/\s/, 1)[0] ?? ''} />
    }
    case 'list':
      return listOf(token as Tokens.List, depth)
    case 'checkbox':
      return <input type="checkbox" checked={(token as Tokens.Checkbox).checked} disabled aria-label="Done" />
    case 'table':
      return tableOf(token as Tokens.Table, depth)
    case 'strong':
      return <strong>{children()}</strong>
    case 'em':
      return <em>{children()}</em>
    case 'del':
      return <del>{children()}</del>
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>
    case 'br':
      return <br />
    case 'link':
      return linkTo((token as Tokens.Link).href, children())
    case 'image': {
      const { href, text } = token as Tokens.Image
      return linkTo(href, `Image: ${decoded(text) || href}`)
    }
    case 'text':
      return (token as Tokens.Text).tokens ? children() : decoded((token as Tokens.Text).text)
    case 'escape':
      return decoded((token as Tokens.Escape).text)
    case 'html':
      return (token as Tokens.HTML).block ? <p class="answer-text">{token.raw}</p> : token.raw
    default:
      return token.raw
  }
}

function listOf({ ordered, start, items }: Tokens.List, depth: number): ComponentChildren {
  const children = items.map((item, index) => <li key={index}>{nodesOf(item.tokens, depth)}</li>)
  return ordered ? <ol start={start === '' ? 1 : start}>{children}</ol> : <ul>{children}</ul>
}

function tableOf({ header, rows, align }: Tokens.Table, depth: number): ComponentChildren {
  const side = (column: number): string => (align[column] === 'right' ? 'number' : '')
  return (
    <div class="table-wrap" role="region" aria-label="Table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {header.map(({ tokens }, column) => (
              <th key={column} scope="col" class={side(column)}>
                {nodesOf(tokens, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map(({ tokens }, column) => (
                <td key={column} class={side(column)}>
                  {nodesOf(tokens, depth)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function linkTo(address: string, children: ComponentChildren): ComponentChildren {
  if (!isSafe(address)) return <span>{children}</span>
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
}

/** A whole address of the web or of a mailbox. Any other could run a script, or lead into the console. */
function isSafe(address: string): boolean {
  return URL.canParse(address) && ['http:', 'https:', 'mailto:'].includes(new URL(address).protocol)
}

/** Replaces character references such as &amp;lt; by the character. */
function decoded(text: string): string {
  return text.replaceAll(
    /&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});/gi,
    (reference) => new DOMParser().parseFromString(reference, 'text/html').body.textContent,
  )
}
