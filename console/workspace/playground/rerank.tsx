import { useState } from 'preact/hooks'
import { Field } from '../../shared/form.tsx'
import { Table } from '../../shared/parts.tsx'
import type { Answer, Model } from '../api.ts'
import { RequestFrame, useRequest } from './request.tsx'

/** Sorts documents by relevance, with either of the two endpoints for rerankers. */
interface Ranked {
  readonly index: number
  readonly score: number
}

export function Rerank({ model }: { model: Model }) {
  const path = model.endpoints.includes('/reranking') ? '/reranking' : '/rerank'
  const [query, setQuery] = useState('What is a weir?')
  const [text, setText] = useState(
    'Bread is baked in an oven.\nA weir is a low dam across a river.\nSydney is in New South Wales.',
  )
  const documents = text.split('\n').filter((line) => line.trim() !== '')
  const request = useRequest<readonly Ranked[]>(path)
  const body =
    path === '/rerank'
      ? { model: model.id, query, documents }
      : { model: model.id, query: { text: query }, passages: documents.map((it) => ({ text: it })) }
  return (
    <RequestFrame
      request={request}
      model={model.id}
      title="Rank"
      isReady={query.trim() !== '' && documents.length > 0}
      submit={() => request.submit({ json: body }, readRanked)}
      code={{ path, body: { kind: 'json', value: body } }}
      fields={
        <>
          <Field label="Question">
            <input name="query" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
          </Field>
          <Field label="Documents" hint="One per line.">
            <textarea
              name={path === '/rerank' ? 'documents' : 'passages'}
              rows={8}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </Field>
        </>
      }
      show={(ranked) => (
        <Table
          caption="Documents in their new order"
          rows={ranked.map((it, place) => ({ ...it, place }))}
          keyOf={({ index }) => String(index)}
          columns={[
            { title: 'Document', cell: ({ index }) => documents[index] ?? '' },
            { title: 'Score', isNumber: true, cell: ({ score }) => score.toFixed(4) },
            {
              title: 'Now',
              isNumber: true,
              cell: ({ index, place }) => (
                <>
                  {place + 1}
                  <br />
                  <span class="soft small">{moved(index, place)}</span>
                </>
              ),
            },
          ]}
        />
      )}
    />
  )
}

/** Where a document was before, and how far it has moved. */
function moved(index: number, place: number): string {
  if (index === place) return 'as before'
  return `${index > place ? '↑' : '↓'} ${Math.abs(index - place)} from ${index + 1}`
}

async function readRanked(response: Response): Promise<readonly Ranked[]> {
  const answer = (await response.json()) as Partial<Answer<'rerank'>> & Partial<Answer<'reranking'>>
  return answer.results
    ? answer.results.map(({ index, relevance_score: score }) => ({ index, score }))
    : (answer.rankings ?? []).map(({ index, logit }) => ({ index, score: logit }))
}
