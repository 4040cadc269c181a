import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSigner, type ThinkingSignature } from './signatures.ts'

const seal = (tokens: number, id = 'thk_1'): ThinkingSignature => ({
  kind: 'thinking',
  id,
  model: 'm',
  organization: 'o',
  tokens,
  shown: 's',
  previous: null,
  behind: null,
  response: 'r',
  of: 1,
  system: 'a',
  tools: 'b',
  messages: 'c',
})

describe('signatures', () => {
  it('say again what was sealed', () => {
    fc.assert(
      fc.property(fc.nat(5_000), fc.string(), (tokens, id) => {
        expect(createSigner('s').verify(createSigner('s').sign(seal(tokens, id)))).toEqual(seal(tokens, id))
      }),
    )
  })

  it('do not open when one character is another, and not for another seed', () => {
    const text = createSigner('s').sign(seal(10))
    fc.assert(
      fc.property(fc.nat(text.length - 1), fc.constantFrom(...'ABCxyz019+/=!'), (at, letter) => {
        fc.pre(text[at] !== letter)
        expect(createSigner('s').verify(text.slice(0, at) + letter + text.slice(at + 1))).toBeNull()
      }),
    )
    expect(createSigner('t').verify(text)).toBeNull()
  })

  it('do not open when cut, lengthened or made up', () => {
    const text = createSigner('s').sign(seal(10))
    const broken = ['', 'x', text.slice(1), text.slice(0, -4), `${text}AAAA`, ` ${text}`]
    expect(broken.map((each) => createSigner('s').verify(each))).toEqual(broken.map(() => null))
  })
})
