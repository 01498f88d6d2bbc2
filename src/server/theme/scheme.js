/**
 * Light, dark, or as the system: applied before the first paint, so that a page never flashes, and chosen with the buttons
 * in <scheme-switch>. The choice stays in this browser.
 */
{
  const KEPT_AS = 'weir-scheme'
  const root = document.documentElement

  /** Without storage, a choice lasts as long as the page. */
  function kept() {
    try {
      return localStorage.getItem(KEPT_AS)
    } catch {
      return null
    }
  }

  function apply(scheme) {
    if (scheme === 'light' || scheme === 'dark') root.dataset.scheme = scheme
    else delete root.dataset.scheme
    for (const button of document.querySelectorAll('scheme-switch button')) show(button)
  }

  function show(button) {
    button.setAttribute('aria-pressed', String(button.value === (root.dataset.scheme ?? 'system')))
  }

  function choose(scheme) {
    apply(scheme)
    try {
      localStorage.setItem(KEPT_AS, scheme)
    } catch {}
  }

  apply(kept())
  // In a page that is being parsed, the buttons come after this script and after the element around them.
  addEventListener('DOMContentLoaded', () => apply(kept()))
  // Another tab has chosen.
  addEventListener('storage', ({ key }) => key === KEPT_AS && apply(kept()))
  customElements.define(
    'scheme-switch',
    class extends HTMLElement {
      connectedCallback() {
        this.addEventListener('click', ({ target }) => {
          const button = target.closest('button')
          if (button) choose(button.value)
        })
        this.querySelectorAll('button').forEach(show)
      }
    },
  )
}
