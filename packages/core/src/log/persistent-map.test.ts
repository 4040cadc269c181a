import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Trie } from './persistent-map.ts'

/** `costarring` and `liquid` have one FNV-1a hash. */
const keys = fc.oneof(fc.constantFrom('a', 'b', 'costarring', 'liquid', ''), fc.string())

describe('Trie', () => {
  it('is a map, and every older one stays as it was', () => {
    const steps = fc.array(fc.tuple(keys, fc.nat(), fc.nat(20)), { maxLength: 60 })
    fc.assert(
      fc.property(steps, (list) => {
        const family: { trie: Trie<number>; map: Map<string, number> }[] = [
          { trie: Trie.empty(), map: new Map() },
        ]
        for (const [key, value, from] of list) {
          const parent = family[from % family.length] ?? { trie: Trie.empty<number>(), map: new Map() }
          family.push({ trie: parent.trie.set(key, value), map: new Map(parent.map).set(key, value) })
        }
        for (const { trie, map } of family) expect(new Map(trie)).toEqual(map)
        for (const { trie, map } of family) {
          for (const [key] of list) expect(trie.get(key)).toBe(map.get(key))
        }
      }),
    )
  })

  it('keeps keys apart whose hashes are equal', () => {
    const trie = Trie.empty<number>().set('costarring', 1).set('liquid', 2).set('costarring', 3)
    expect(new Map(trie)).toEqual(
      new Map([
        ['costarring', 3],
        ['liquid', 2],
      ]),
    )
  })

  it('holds many keys', () => {
    let trie = Trie.empty<number>()
    for (let index = 0; index < 5000; index += 1) trie = trie.set(`toolu_${index}`, index)
    expect([...trie].length).toBe(5000)
    expect([trie.get('toolu_0'), trie.get('toolu_4999'), trie.get('toolu_5000')]).toEqual([
      0,
      4999,
      undefined,
    ])
    expect([trie.has('toolu_7'), trie.has('other')]).toEqual([true, false])
  })
})
