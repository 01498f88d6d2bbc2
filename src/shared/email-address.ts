/** One ASCII address, as forms in browsers accept it. */
const ADDRESS = /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[a-z\d-]{1,63}(?:\.[a-z\d-]{1,63})*$/i

/** The longest that SMTP allows. */
export const MAX_EMAIL_ADDRESS = 254

export function isEmailAddress(text: string): boolean {
  return text.length <= MAX_EMAIL_ADDRESS && ADDRESS.test(text)
}
