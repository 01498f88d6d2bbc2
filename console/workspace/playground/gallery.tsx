import { useState } from 'preact/hooks'
import { Confirm } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { Dialog, Empty, Ready } from '../../shared/parts.tsx'
import { keeper, newId, type KeptEntry } from './kept.ts'

/** The images that were made in this browser, as data URLs. */
interface Facts {
  readonly prompt: string
  readonly model: string
}

const pictures = keeper<Facts, string>('images', { count: 60, size: 50_000_000 })

/** Resolves when all are kept, in the order in which they were made. */
export async function keepPictures(facts: Facts, urls: readonly string[]): Promise<void> {
  for (const url of urls.toReversed()) await pictures.keep(newId(), facts, url)
}

export function Gallery() {
  const loaded = useData(() => pictures.list(), [pictures.changes.value])
  const [isClearing, setClearing] = useState(false)
  return (
    <section class="panel stack" aria-label="Gallery">
      <div class="row apart">
        <h2>Gallery</h2>
        {loaded.state === 'ready' && loaded.data.length > 0 ? (
          <button type="button" class="danger" onClick={() => setClearing(true)}>
            Delete all
          </button>
        ) : null}
      </div>
      <p class="small soft">
        Kept in this browser only, for this workspace: the last 60 images and at most 50 MB. The oldest are dropped
        first.
      </p>
      <Ready of={loaded}>
        {(entries) =>
          entries.length === 0 ? (
            <Empty title="No images yet">Images that you make stay here, in this browser.</Empty>
          ) : (
            <div class="gallery">
              {entries.map((entry) => (
                <KeptPicture key={entry.id} entry={entry} />
              ))}
            </div>
          )
        }
      </Ready>
      {isClearing ? (
        <Confirm
          title="Delete all images?"
          verb="Delete all"
          act={() => pictures.clear()}
          close={() => setClearing(false)}
        >
          <p>They are deleted from this browser and cannot be brought back.</p>
        </Confirm>
      ) : null}
    </section>
  )
}

function KeptPicture({ entry: { id, facts } }: { entry: KeptEntry<Facts> }) {
  const loaded = useData(() => pictures.read(id), [id])
  if (loaded.state !== 'ready' || loaded.data === undefined) return <div class="loading" />
  return <Picture url={loaded.data} about={facts.prompt} remove={() => pictures.remove(id)} />
}

/** A picture as wide as its place. A click shows it at its real size. */
export function Picture({ url, about, remove }: { url: string; about: string; remove?: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class="picture" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <img src={url} alt={about} />
      </button>
      {isOpen ? <Viewer url={url} about={about} remove={remove} close={() => setOpen(false)} /> : null}
    </>
  )
}

function Viewer({
  url,
  about,
  remove,
  close,
}: {
  url: string
  about: string
  remove: (() => Promise<void>) | undefined
  close: () => void
}) {
  const [size, setSize] = useState('')
  return (
    <Dialog title="Image" kind="viewer" close={close}>
      <div class="real-size" role="region" aria-label="Image at its real size" tabIndex={0}>
        <img
          src={url}
          alt={about}
          onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) => setSize(`${naturalWidth} × ${naturalHeight}`)}
        />
      </div>
      <p class="small wrap">
        {about} <span class="soft">{size}</span>
      </p>
      <div class="row">
        <Download url={url} about={about} />
        {remove === undefined ? null : (
          <button type="button" class="danger" onClick={() => void remove()}>
            Delete
          </button>
        )}
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  )
}

export function Download({ url, about }: { url: string; about: string }) {
  const [, kind = 'png'] = /^data:image\/(\w+)/.exec(url) ?? []
  const words = about.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '-')
  return (
    <a class="button" href={url} download={`${words.slice(0, 60)}.${kind}`}>
      Download
    </a>
  )
}
