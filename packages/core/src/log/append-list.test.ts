import { describe, expect, it } from 'vitest'
import { List } from './append-list.ts'
import { IndexMap } from './persistent-map.ts'

describe('List', () => {
  it('leaves the shorter list as it was', () => {
    const two = List.of(['a', 'b'])
    const three = two.push('c')
    expect([...two]).toEqual(['a', 'b'])
    expect([...three]).toEqual(['a', 'b', 'c'])
    expect([two.last, three.last, three.at(0), three.at(-2), two.at(2)]).toEqual([
      'b',
      'c',
      'a',
      'b',
      undefined,
    ])
  })

  it('parts two successors of one list', () => {
    const root = List.of(['a'])
    const left = root.push('left')
    const right = root.push('right')
    expect([[...left], [...right]]).toEqual([
      ['a', 'left'],
      ['a', 'right'],
    ])
    expect([left.extends(root), right.extends(root), right.extends(left)]).toEqual([true, true, false])
    expect([root.extends(right), left.extends(right)]).toEqual([false, false])
  })

  it('knows its forebears through copies, and no further than it shares them', () => {
    const two = List.of(['a']).push('b')
    const tried = two.push('tried').push('too')
    const real = two.push('c')
    const again = real.push('d')
    real.push('e')
    expect([real.extends(two), again.extends(two), again.extends(real)]).toEqual([true, true, true])
    expect([real.extends(tried), tried.extends(real), tried.extends(two)]).toEqual([false, false, true])
    expect([again.extends(List.of(['a', 'b'])), List.of(['a', 'b']).extends(two)]).toEqual([false, false])
  })

  it('cuts out a stretch without reaching past its own end', () => {
    const short = List.of([1, 2, 3])
    short.push(4)
    expect([short.toArray(), short.toArray(1), short.toArray(1, 9)]).toEqual([
      [1, 2, 3],
      [2, 3],
      [2, 3],
    ])
  })
})

describe('IndexMap', () => {
  it('keeps the first place of a key', () => {
    const map = IndexMap.empty().add('a', 0).add('a', 5)
    expect(map.get('a')).toBe(0)
  })

  it('does not show what a longer relative added', () => {
    const short = IndexMap.empty().add('a', 0)
    const long = short.add('b', 1)
    expect([short.get('b'), long.get('b')]).toEqual([undefined, 1])
  })

  it('parts two successors of one map', () => {
    const root = IndexMap.empty().add('a', 0)
    const left = root.add('b', 1)
    const right = root.add('c', 1)
    expect([left.get('c'), right.get('b'), right.get('a'), right.get('c')]).toEqual([
      undefined,
      undefined,
      0,
      1,
    ])
  })
})
