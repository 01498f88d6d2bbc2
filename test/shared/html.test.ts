import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { escapeHtml } from '../../src/shared/html.ts'

describe('text in HTML', () => {
  it('cannot open a tag, start an entity, or end an attribute', () => {
    assert.equal(escapeHtml(`<b title="a" class='b'>&amp;`), '&#60;b title=&#34;a&#34; class=&#39;b&#39;&#62;&#38;amp;')
  })

  it('is unchanged otherwise', () => assert.equal(escapeHtml('10⁻¹² AUD = {x}'), '10⁻¹² AUD = {x}'))
})
