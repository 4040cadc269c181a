import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { orderTools, readToolOrTypeName } from './prefix-snapshot.ts'

const named = (name: string) => ({ name, input_schema: { type: 'object' } })
const names = (given: readonly string[]) => orderTools(given.map(named)).map(readToolOrTypeName)

describe('the order of tools', () => {
  it('is by name, what one user connected behind what everybody has', () => {
    expect(names(['mcp__b', 'Write', 'Bash', 'mcp__a', 'apply', 'Read'])).toEqual([
      'Bash',
      'Read',
      'Write',
      'apply',
      'mcp__a',
      'mcp__b',
    ])
  })

  it('does not depend on the order they came in', () => {
    const some = fc.uniqueArray(fc.constantFrom('Read', 'Bash', 'mcp__x', 'mcp__y', 'é', 'Z', '10', '9'))
    fc.assert(
      fc.property(some, (list) => {
        expect(names(list.toReversed())).toEqual(names(list))
      }),
    )
  })

  it('takes a type for a name where a tool of the provider has none', () => {
    expect(orderTools([{ type: 'web_search' }, named('Bash'), named('zip')]).map(readToolOrTypeName)).toEqual(
      ['Bash', 'web_search', 'zip'],
    )
  })

  it('asks the host whose a tool is', () => {
    const ordered = orderTools([named('a'), named('b')], ({ name }) => name === 'a')
    expect(ordered.map(readToolOrTypeName)).toEqual(['b', 'a'])
  })
})
