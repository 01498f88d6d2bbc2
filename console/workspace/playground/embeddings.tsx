import { useState } from 'preact/hooks'
import { Field } from '../../shared/form.tsx'
import type { Answer, Model } from '../api.ts'
import { RequestFrame, useRequest } from './request.tsx'

/** Embeds several texts and shows how similar each is to each other. */
export function Embeddings({ model }: { model: Model }) {
  const [text, setText] = useState(
    'A weir raises the water level.\nA low dam across a river.\nBread rises in the oven.',
  )
  const texts = text.split('\n').filter((line) => line.trim() !== '')
  const request = useRequest<readonly number[][]>('/embeddings')
  const body = { model: model.id, input: texts }
  return (
    <RequestFrame
      request={request}
      model={model.id}
      title="Compare"
      isReady={texts.length > 0 && texts.length <= 50}
      submit={() => request.submit({ json: body }, readVectors)}
      code={{ path: '/embeddings', body: { kind: 'json', value: body } }}
      fields={
        <Field label="Texts" hint="One text per line, at most 50.">
          <textarea name="input" rows={8} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </Field>
      }
      show={(vectors) => <Similarity vectors={vectors} texts={texts} />}
    />
  )
}

async function readVectors(response: Response): Promise<readonly number[][]> {
  const { data } = (await response.json()) as Answer<'embeddings'>
  return data.map(({ embedding }) => embedding as unknown as number[])
}

function Similarity({ vectors, texts }: { vectors: readonly number[][]; texts: readonly string[] }) {
  return (
    <>
      <h3>Cosine similarity</h3>
      <p class="small soft">
        {vectors.length} vectors of {vectors[0]?.length ?? 0} dimensions. 1.00 means the same direction.
      </p>
      <div class="table-wrap" role="region" aria-label="Cosine similarity" tabIndex={0}>
        <table class="matrix">
          <thead>
            <tr>
              <td />
              {vectors.map((_, column) => (
                <th key={column} scope="col" class="number">
                  {column + 1}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {vectors.map((row, index) => (
              <tr key={index}>
                <th scope="row">
                  {index + 1} <span class="soft small">{texts[index]?.slice(0, 40)}</span>
                </th>
                {vectors.map((other, column) => {
                  const value = cosine(row, other)
                  return (
                    <td
                      key={column}
                      class="number"
                      style={{
                        background: `color-mix(in oklab, var(--accent) ${Math.max(0, value) * 35}%, transparent)`,
                      }}
                    >
                      {value.toFixed(2)}
                    </td>
                  )
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function cosine(one: readonly number[], other: readonly number[]): number {
  const dot = (a: readonly number[], b: readonly number[]): number =>
    a.reduce((sum, it, i) => sum + it * (b[i] ?? 0), 0)
  return dot(one, other) / (Math.sqrt(dot(one, one) * dot(other, other)) || 1)
}
