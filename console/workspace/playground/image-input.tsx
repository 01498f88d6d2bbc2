import type { Signal } from '@preact/signals'

/** Images that go with a message, as data URLs. */
export function ImageInput({ images }: { images: Signal<readonly string[]> }) {
  async function attach(files: FileList | null): Promise<void> {
    images.value = await Promise.all([...(files ?? [])].map(dataUrl))
  }
  return (
    <label>
      Images
      <input
        type="file"
        accept="image/png,image/jpeg,image/webp,image/gif"
        multiple
        onChange={(event) => void attach(event.currentTarget.files)}
      />
    </label>
  )
}

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => resolve(reader.result as string))
    reader.addEventListener('error', () => reject(reader.error ?? new Error('The file cannot be read.')))
    reader.readAsDataURL(file)
  })
}
