import { useState } from 'preact/hooks'
import { codeSamples, sdkSamples, type SampleBody } from '../../src/server/docs/code-samples.ts'
import { Code, Copy, Segments } from './parts.tsx'

type Language = keyof typeof codeSamples
const languages = Object.keys(codeSamples) as Language[]
/** Has the key, in all code that is shown. */
export const VARIABLE = 'WEIR_API_KEY'

/** A request as code in each language, ready to paste: with the SDK of OpenAI where it has the call. */
export function RequestCode({ path, body, hasCopied }: { path: string; body: SampleBody; hasCopied?: () => void }) {
  const [language, setLanguage] = useState<Language>('curl')
  const text = codeOf(language, path, body)
  return (
    <div class="stack tight">
      <div class="row apart">
        <Segments
          label="Language"
          value={language}
          options={languages.map((it) => [it, it] as const)}
          choose={setLanguage}
        />
        <Copy text={text} {...(hasCopied ? { hasCopied } : {})} />
      </div>
      <Code text={text} label={`The request in ${language}`} />
    </div>
  )
}

/** The base address is the one that this page was reached by. */
export function codeOf(language: Language, path: string, body: SampleBody): string {
  const base = `${location.origin}/api/v1`
  const samples = { ...codeSamples, ...sdkSamples({ base, path, variable: VARIABLE, body }) }
  return samples[language]({ method: 'POST', url: base + path, variable: VARIABLE, body, answersJson: true })
}
