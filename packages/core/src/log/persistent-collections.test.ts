import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AppendList, PersistentMap } from './persistent-collections.ts'

describe('List', () => {
  it('does not change the shorter list', () => {
    const two = AppendList.of(['a', 'b'])
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

  it('finds the last item that matches, and nothing if none does', () => {
    const list = AppendList.of(['a', 'b', 'ab'])
    const find = (text: string) => list.take(2).findLast((item) => item.includes(text))
    expect([find('a'), find('b'), find('c')]).toEqual(['a', 'b', undefined])
  })

  it('keeps two lists made from one apart', () => {
    const root = AppendList.of(['a'])
    const left = root.push('left')
    const right = root.push('right')
    expect([[...left], [...right]]).toEqual([
      ['a', 'left'],
      ['a', 'right'],
    ])
    expect([left.extends(root), right.extends(root), right.extends(left)]).toEqual([true, true, false])
    expect([root.extends(right), left.extends(right)]).toEqual([false, false])
  })

  it('extends the lists it was copied from, as far as it shares their items', () => {
    const two = AppendList.of(['a']).push('b')
    const tried = two.push('tried').push('too')
    const real = two.push('c')
    const again = real.push('d')
    real.push('e')
    expect([real.extends(two), again.extends(two), again.extends(real)]).toEqual([true, true, true])
    expect([real.extends(tried), tried.extends(real), tried.extends(two)]).toEqual([false, false, true])
    expect([again.extends(AppendList.of(['a', 'b'])), AppendList.of(['a', 'b']).extends(two)]).toEqual([
      false,
      false,
    ])
  })

  it('shares the items that `take` leaves, and keeps what is pushed then apart', () => {
    const two = AppendList.of(['a']).push('b')
    const three = two.push('c')
    const late = three.take(2).push('late').push('c')
    expect([[...three], [...late], [...three.take(-1)]]).toEqual([
      ['a', 'b', 'c'],
      ['a', 'b', 'late', 'c'],
      [],
    ])
    expect([late.extends(two), late.extends(three), three.take(9) === three]).toEqual([true, false, true])
  })

  it('returns a slice without items past its own end', () => {
    const short = AppendList.of([1, 2, 3])
    short.push(4)
    expect([short.toArray(), short.toArray(1), short.toArray(1, 9)]).toEqual([
      [1, 2, 3],
      [2, 3],
      [2, 3],
    ])
  })
})

describe('PersistentMap.setIfAbsent', () => {
  it('keeps the first value of a key', () => {
    const map = PersistentMap.empty<number>().setIfAbsent('a', 0).setIfAbsent('a', 5)
    expect(map.get('a')).toBe(0)
  })

  it('does not contain what a later map added', () => {
    const short = PersistentMap.empty<number>().setIfAbsent('a', 0)
    const long = short.setIfAbsent('b', 1)
    expect([short.get('b'), long.get('b')]).toEqual([undefined, 1])
  })

  it('keeps two maps made from one apart', () => {
    const root = PersistentMap.empty<number>().setIfAbsent('a', 0)
    const left = root.setIfAbsent('b', 1)
    const right = root.setIfAbsent('c', 1)
    expect([left.get('c'), right.get('b'), right.get('a'), right.get('c')]).toEqual([
      undefined,
      undefined,
      0,
      1,
    ])
  })
})

const keys = fc.oneof(fc.constantFrom('a', 'b', '__proto__', ''), fc.string())

describe('PersistentMap', () => {
  it('behaves like a Map, and no update changes an older one', () => {
    const steps = fc.array(fc.tuple(keys, fc.nat(), fc.nat(20)), { maxLength: 60 })
    fc.assert(
      fc.property(steps, (list) => {
        const family: { persistent: PersistentMap<number>; map: Map<string, number> }[] = [
          { persistent: PersistentMap.empty(), map: new Map() },
        ]
        for (const [key, value, from] of list) {
          const parent = family[from % family.length] ?? {
            persistent: PersistentMap.empty<number>(),
            map: new Map(),
          }
          family.push({
            persistent: parent.persistent.set(key, value),
            map: new Map(parent.map).set(key, value),
          })
        }
        for (const { persistent, map } of family) expect(new Map(persistent)).toEqual(map)
        for (const { persistent, map } of family) {
          for (const [key] of list) expect(persistent.get(key)).toBe(map.get(key))
        }
      }),
    )
  })

  it('keeps the old value in the older map when a key is set again', () => {
    const first = PersistentMap.empty<number>().set('a', 1).set('b', 2)
    const second = first.set('a', 3)
    expect([new Map(first), new Map(second)]).toEqual([
      new Map([
        ['a', 1],
        ['b', 2],
      ]),
      new Map([
        ['a', 3],
        ['b', 2],
      ]),
    ])
  })

  it('holds many keys', () => {
    let map = PersistentMap.empty<number>()
    for (let index = 0; index < 5000; index += 1) map = map.set(`toolu_${index}`, index)
    expect([...map].length).toBe(5000)
    expect([map.get('toolu_0'), map.get('toolu_4999'), map.get('toolu_5000')]).toEqual([0, 4999, undefined])
    expect([map.has('toolu_7'), map.has('other')]).toEqual([true, false])
  })
})
