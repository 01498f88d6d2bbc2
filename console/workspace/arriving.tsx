import { bytesText } from '../../src/shared/bytes-text.ts'
import { percent } from '../shared/format.ts'
import { Meter } from '../shared/parts.tsx'
import type { LiveSample } from './live.ts'

/** Models that are being downloaded, with their progress. */
export function Arriving({ downloads }: { downloads: LiveSample['downloads'] }) {
  if (downloads.length === 0) return null
  return (
    <section class="panel stack" aria-label="Models that are being downloaded">
      <h2>Being downloaded</h2>
      {downloads.map(({ model, received_bytes: received, total_bytes: total, problem }) => (
        <div key={model} class="stack tight">
          <div class="row apart">
            <code class="wrap">{model}</code>
            <span class="small soft">
              {total === null
                ? bytesText(received)
                : `${bytesText(received)} of ${bytesText(total)}, ${percent(total > 0 ? received / total : 0)}`}
            </span>
          </div>
          <Meter value={received} max={total ?? received} label={`Download of ${model}`} />
          {problem === null ? null : <p class="small soft">{problem} It is tried again by itself.</p>}
        </div>
      ))}
    </section>
  )
}
