/** One of icons.ts, in the colour and beside the text that says the same. */
export function Icon({ of: svg }: { of: string }) {
  return <span class="icon" aria-hidden="true" dangerouslySetInnerHTML={{ __html: svg }} />
}
