import { useState } from 'preact/hooks'
import { Field } from '../../shared/form.tsx'
import type { Answer, Model } from '../api.ts'
import { Download, Gallery, keepPictures, Picture } from './gallery.tsx'
import { RequestFrame, useRequest } from './request.tsx'

/** What a request made, and from which description. */
interface Made {
  readonly urls: readonly string[]
  readonly about: string
}

/** Makes images from a description. The same seed makes the same image again. */
export function Images({ model }: { model: Model }) {
  const [prompt, setPrompt] = useState('A red apple on a table')
  const [seed, setSeed] = useState('')
  const [count, setCount] = useState('1')
  const request = useRequest<Made>('/images/generations')
  const takes = (name: string): boolean => model.supported_parameters.includes(name)
  const body = {
    model: model.id,
    prompt,
    ...(count === '' || count === '1' ? {} : { n: Number(count) }),
    ...(seed === '' ? {} : { seed: Number(seed) }),
    response_format: 'b64_json',
  }
  async function keepImages(response: Response): Promise<Made> {
    const urls = await readImages(response)
    await keepPictures({ prompt, model: model.id }, urls)
    return { urls, about: prompt }
  }

  return (
    <RequestFrame
      request={request}
      model={model.id}
      title="Make"
      isReady={prompt.trim() !== ''}
      submit={() => request.submit({ json: body }, keepImages)}
      code={{ path: '/images/generations', body: { kind: 'json', value: body } }}
      fields={
        <>
          <Field label="Description">
            <textarea name="prompt" rows={3} value={prompt} onInput={(event) => setPrompt(event.currentTarget.value)} />
          </Field>
          <div class="number-fields">
            {takes('n') ? (
              <Field label="Images">
                <input
                  name="n"
                  type="number"
                  min={1}
                  max={10}
                  value={count}
                  onInput={(event) => setCount(event.currentTarget.value)}
                />
              </Field>
            ) : null}
            {takes('seed') ? (
              <Field label="Seed">
                <input
                  name="seed"
                  type="number"
                  step={1}
                  placeholder="random"
                  value={seed}
                  onInput={(event) => setSeed(event.currentTarget.value)}
                />
              </Field>
            ) : null}
          </div>
        </>
      }
      show={({ urls, about }) =>
        urls.map((url, index) => (
          <figure key={url} class="made">
            <Picture url={url} about={`${about}, image ${index + 1}`} />
            <Download url={url} about={about} />
          </figure>
        ))
      }
    >
      <Gallery />
    </RequestFrame>
  )
}

async function readImages(response: Response): Promise<readonly string[]> {
  const { data } = (await response.json()) as Answer<'imagesGenerations'>
  return data.map((it) => {
    const { b64_json: base64 = '' } = it as { b64_json?: string }
    return `data:${mediaTypeOf(base64)};base64,${base64}`
  })
}

function mediaTypeOf(base64: string): string {
  if (base64.startsWith('/9j/')) return 'image/jpeg'
  return base64.startsWith('UklGR') ? 'image/webp' : 'image/png'
}
