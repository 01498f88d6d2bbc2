import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isLanguageCode, languageName } from '../../src/shared/language-names.ts'

describe('the language of a transcript', () => {
  it('has the same name, however the engine writes it', () => {
    const words = ['en', 'en-US', 'en_au', 'EN', 'English', ' english ']
    assert.deepEqual(new Set(words.map(languageName)), new Set(['english']))
  })

  it('has Whisper’s name if Unicode has another', () => {
    assert.deepEqual(['bn', 'my', 'tl', 'nn-NO'].map(languageName), ['bengali', 'myanmar', 'tagalog', 'nynorsk'])
  })

  it('is unchanged, in lower case, when it is unknown', () => {
    assert.deepEqual(['Klingon', 'zz', 'unknown'].map(languageName), ['klingon', 'zz', 'unknown'])
  })

  it('is given by callers as an existing code of two letters', () => {
    assert.deepEqual(['en', 'mi', 'zz', 'eng', 'EN', 'en-US', ''].map(isLanguageCode), [
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ])
  })
})
