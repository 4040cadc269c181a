import { describe, expect, it } from 'vitest'
import {
  createToolCatalogue,
  cutServerText,
  formatServerInstructions,
  listNamedTools,
  listServersWithNews,
  type McpTool,
  type ToolCatalogue,
  toServerName,
  withListing,
  withNewPrefix,
  withUpdatedOffer,
} from './tool-catalogue.ts'

const createTool = (name: string, fields: Readonly<Record<string, object>> = {}): McpTool => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: 'object', properties: fields as never },
  isReadOnly: false,
})

const list = (
  catalogue: ToolCatalogue,
  server: string,
  ...tools: readonly (string | McpTool)[]
): ToolCatalogue =>
  withListing(catalogue, server, {
    tools: tools.map((tool) => (typeof tool === 'string' ? createTool(tool) : tool)),
    instructions: null,
    hasResources: false,
  })

const SETTLED = { isSettled: true, addsForFree: false }

const namesOf = ({ offered }: ToolCatalogue): string =>
  listNamedTools(offered)
    .map(({ name }) => name.replace('mcp__', ''))
    .join(' ')

describe('when the offer changes', () => {
  it('the first request offers what is there, even while other servers start', () => {
    const first = withUpdatedOffer(list(createToolCatalogue(null), 'a', 'x'), {
      isSettled: false,
      addsForFree: false,
    })
    expect(namesOf(first)).toBe('a__x')
  })

  it('later servers come together, once, when none is starting any more', () => {
    const first = withUpdatedOffer(createToolCatalogue(null), SETTLED)
    const one = list(first, 'a', 'x')
    expect(namesOf(withUpdatedOffer(one, { isSettled: false, addsForFree: false }))).toBe('')
    const both = withUpdatedOffer(list(one, 'b', 'y'), SETTLED)
    expect(namesOf(both)).toBe('a__x b__y')
    const third = withUpdatedOffer(list(both, 'c', 'z'), SETTLED)
    expect(namesOf(third)).toBe('a__x b__y')
    expect(listServersWithNews(third)).toEqual(['c'])
    expect(namesOf(withUpdatedOffer(withNewPrefix(third), SETTLED))).toBe('a__x b__y c__z')
  })

  it('a tool that is listed no more stays until the next compaction', () => {
    const first = withUpdatedOffer(list(createToolCatalogue(null), 'a', 'x', 'y'), SETTLED)
    const less = withUpdatedOffer(list(first, 'a', 'y'), SETTLED)
    expect(less.offered).toBe(first.offered)
    expect(namesOf(withUpdatedOffer(withNewPrefix(less), SETTLED))).toBe('a__y')
  })

  it('another order of tools or of fields is no change', () => {
    const fields = { one: { type: 'string' }, two: { type: 'number', minimum: 1 } }
    const turned = { two: { minimum: 1, type: 'number' }, one: { type: 'string' } }
    const first = withUpdatedOffer(
      list(createToolCatalogue(null), 'a', createTool('x', fields), 'y'),
      SETTLED,
    )
    const again = list(first, 'a', 'y', createTool('x', turned))
    expect(withUpdatedOffer(again, SETTLED).offered).toBe(first.offered)
    const renewed = withUpdatedOffer(withNewPrefix(again), SETTLED)
    expect(JSON.stringify(listNamedTools(renewed.offered))).toBe(
      JSON.stringify(listNamedTools(first.offered)),
    )
  })

  it('other inputs of a tool are announced once, another description waits', () => {
    const first = withUpdatedOffer(list(createToolCatalogue(null), 'a', 'x'), SETTLED)
    const described = withUpdatedOffer(list(first, 'a', { ...createTool('x'), description: 'New.' }), SETTLED)
    expect(described.offered).toBe(first.offered)
    const changed = withUpdatedOffer(list(first, 'a', createTool('x', { one: {} })), SETTLED)
    expect(listNamedTools(changed.offered)[0]?.tool.inputSchema.properties).toEqual({ one: {} })
    const twice = withUpdatedOffer(list(changed, 'a', createTool('x', { two: {} })), SETTLED)
    expect(twice.offered).toBe(changed.offered)
  })

  it('where the provider adds tools for free, they come at once', () => {
    const free = { isSettled: false, addsForFree: true }
    const first = withUpdatedOffer(createToolCatalogue(null), free)
    const second = withUpdatedOffer(list(first, 'a', 'x'), free)
    const third = withUpdatedOffer(list(second, 'b', 'y'), free)
    expect(namesOf(third)).toBe('a__x b__y')
    // Changed inputs would be announced in a message each time, so after the first change they wait for a compaction.
    const redefined = withUpdatedOffer(list(third, 'a', createTool('x', { one: {} }), 'z'), free)
    expect(namesOf(redefined)).toBe('a__x a__z b__y')
    expect(listNamedTools(redefined.offered)[0]?.tool).toBe(listNamedTools(third.offered)[0]?.tool)
  })

  it('a server may have any name', () => {
    const first = withUpdatedOffer(createToolCatalogue(null), SETTLED)
    expect(namesOf(withUpdatedOffer(list(first, 'constructor', 'x'), SETTLED))).toBe('constructor__x')
  })

  it('a resumed session offers what it offered before, whether or not the server runs', () => {
    const { offered } = withUpdatedOffer(list(createToolCatalogue(null), 'a', 'x'), SETTLED)
    expect(namesOf(withUpdatedOffer(createToolCatalogue(offered), SETTLED))).toBe('a__x')
  })
})

describe('names', () => {
  it.each([
    ['my server', 'my_server'],
    ['a__b', 'a_b'],
    ['_a_', 'a'],
    ['größe', 'gr_e'],
    ['!!', ''],
    [`${'x'.repeat(31)}_y`, 'x'.repeat(31)],
  ])('the server %s is called %s', (given, name) => {
    expect(toServerName(given)).toBe(name)
  })

  it('every name is accepted by providers and unique, in whatever order tools are listed', () => {
    const given = ['a.b', 'a_b', 'a b', 'x'.repeat(200), `${'x'.repeat(199)}y`, 'same', 'same']
    const name = (tools: readonly string[]): readonly string[] =>
      listNamedTools(list(createToolCatalogue(null), 's', ...tools).latest).map((tool) => tool.name)
    const names = name(given)
    expect(names.every((each) => /^[a-zA-Z0-9_-]{1,64}$/.test(each))).toBe(true)
    expect(new Set(names).size).toBe(6)
    expect(names).toContain('mcp__s__a_b')
    expect(name(given.toReversed())).toEqual(names)
  })
})

it('long texts of servers are cut, and say so', () => {
  expect(cutServerText('short')).toBe('short')
  expect(cutServerText('x'.repeat(3_000))).toBe(`${'x'.repeat(2_048)} [cut]`)
})

it('instructions of servers are shown in the order of their names', () => {
  const listing = (instructions: string | null) => ({ tools: [], instructions, hasResources: false })
  expect(formatServerInstructions({ b: listing('Two.'), a: listing('One.'), c: listing(null) })).toMatch(
    /^# MCP servers\n[\s\S]*\n\n## a\nOne\.\n\n## b\nTwo\.$/,
  )
  expect(formatServerInstructions({ c: listing(null) })).toBeNull()
})
