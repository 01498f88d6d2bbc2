import { useState } from 'preact/hooks'
import { codeSamples, type SampleBody } from '../../src/server/docs/code-samples.ts'
import { Code, Copy, Segments } from './parts.tsx'

type Language = keyof typeof codeSamples
const languages = Object.keys(codeSamples) as Language[]

/** A request as code in each language, ready to paste. */
export function RequestCode({ path, body }: { path: string; body: SampleBody }) {
  const [language, setLanguage] = useState<Language>('curl')
  const text = codeSamples[language]({
    method: 'POST',
    url: `${location.origin}/api/v1${path}`,
    variable: 'WEIR_API_KEY',
    body,
    answersJson: !(body.kind === 'json' && (body.value as { stream?: boolean }).stream === true),
  })
  return (
    <div class="stack tight">
      <div class="row apart">
        <Segments
          label="Language"
          value={language}
          options={languages.map((it) => [it, it] as const)}
          choose={setLanguage}
        />
        <Copy text={text} />
      </div>
      <Code text={text} label={`The request in ${language}`} />
    </div>
  )
}
