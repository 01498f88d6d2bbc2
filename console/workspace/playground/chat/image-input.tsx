/** Images that go with a message, as data URLs. */

const kinds = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif'])

export const imagesIn = (files: Iterable<File> | null | undefined): readonly File[] =>
  [...(files ?? [])].filter(({ type }) => kinds.has(type))

export const readImages = (files: Iterable<File>): Promise<readonly string[]> =>
  Promise.all(imagesIn(files).map(dataUrl))

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => resolve(reader.result as string))
    reader.addEventListener('error', () => reject(reader.error ?? new Error('The file cannot be read.')))
    reader.readAsDataURL(file)
  })
}

export function Thumbnails({ images, remove }: { images: readonly string[]; remove: (index: number) => void }) {
  if (images.length === 0) return null
  return (
    <ul class="thumbnails">
      {images.map((url, index) => (
        <li key={index}>
          <img src={url} alt={`Image ${index + 1} of the message`} />
          <button type="button" aria-label={`Remove image ${index + 1}`} onClick={() => remove(index)}>
            ✕
          </button>
        </li>
      ))}
    </ul>
  )
}
