import { signal } from '@preact/signals'

/** undefined until it has loaded. Until then a text is shown as it is. */
export const library = signal<typeof import('./markdown-library.ts') | undefined>(undefined)

/** Without it the chat works as well, so a failure is not shown. The next chat tries again. */
export async function loadLibrary(): Promise<void> {
  library.value ??= await import('./markdown-library.ts').catch(() => undefined)
}
