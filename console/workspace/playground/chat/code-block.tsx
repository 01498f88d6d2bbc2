import { useMemo } from 'preact/hooks'
import { Copy } from '../../../shared/parts.tsx'
import { library } from './library.ts'

/** Code in colours, with a button that copies it. */
export function CodeBlock({ code, language, title = language }: { code: string; language: string; title?: string }) {
  const loaded = library.value
  const parts = useMemo(() => loaded?.codeParts(code, language), [loaded, code, language])
  const name = title === '' ? 'Code' : title
  return (
    <div class="code-card">
      <div class="code-head">
        <span>{name}</span>
        <Copy text={code} />
      </div>
      <pre tabIndex={0} role="region" aria-label={name}>
        <code>
          {parts?.map(({ text, className }, index) =>
            className === '' ? (
              text
            ) : (
              <span key={index} class={className}>
                {text}
              </span>
            ),
          ) ?? code}
        </code>
      </pre>
    </div>
  )
}

/** JSON with a line for each field, or the text as it is if it is not whole. */
export function Json({ text, title }: { text: string; title: string }) {
  return <CodeBlock code={indented(text)} language="json" title={title} />
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
