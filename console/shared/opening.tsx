import { Mark } from './mark.tsx'

/**
 * The empty frame, until it is known who is signed in. src/server/console/console-page.ts sends the same with the page,
 * so that it is painted before the script has loaded.
 */
export function Opening() {
  return (
    <div class="shell">
      <header class="side">
        <div class="side-head">
          <div class="brand">
            <Mark />
            Weir
          </div>
        </div>
      </header>
    </div>
  )
}
