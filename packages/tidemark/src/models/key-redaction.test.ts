import { describe, expect, it } from 'vitest'
import { createKeyRedactor } from './key-redaction.ts'

const KEY = 'gateway/key+of.a-user_0123456789'
const hide = createKeyRedactor(KEY)
const toBase64 = (text: string): string => Buffer.from(text).toString('base64')

describe('the key of a model in a text', () => {
  it.each(['', 'a', 'ab', 'abc'])(
    'is hidden as it is, and in base64 of any text around it: after %j',
    (before) => {
      expect(hide(`x=${before}${KEY};`)).toBe(`x=${before}[redacted];`)
      const shown = hide(toBase64(`${before}${KEY} and more`))
      const rest = Buffer.from(shown.replace('[redacted]', ''), 'base64').toString('latin1')
      expect([shown.includes('[redacted]'), rest.includes(KEY.slice(2, 8))]).toEqual([true, false])
    },
  )

  it('is hidden in the other alphabet of base64 and over several lines', () => {
    const text = toBase64(`PATH=/usr/bin\0ANTHROPIC_API_KEY=${KEY}\0HOME=/home/user`)
    const wrapped = text.match(/.{1,20}/g)?.join('\n') ?? ''
    for (const form of [
      text.replaceAll('+', '-').replaceAll('/', '_'),
      wrapped,
      wrapped.replaceAll('\n', '\r\n'),
    ])
      expect(hide(form)).toContain('[redacted]')
  })

  it('changes nothing else, and a key that could be a word of any text is not looked for', () => {
    const text = `${KEY.slice(1)} ${toBase64(KEY.slice(0, -2))} ${'word '.repeat(100)}`
    expect(hide(text)).toBe(text)
    expect(createKeyRedactor('any')('any text')).toBe('any text')
  })
})
