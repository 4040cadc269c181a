import { expect, it } from 'vitest'
import { BilledCache, RELATIVE_RATES } from './billed-cache.ts'
import { collectTextLines, listReplacedLines } from './replaced-lines.ts'

const MINUTE = 60_000
const block = (name: string, ttl?: string): object => ({
  type: 'text',
  text: name.repeat(3_600),
  ...(ttl === undefined ? {} : { cache_control: { type: 'ephemeral', ttl } }),
})
const body = (...content: readonly object[]) => ({ messages: [{ role: 'user', content }] })

it.each([
  ['5m', 4, true],
  ['5m', 6, false],
  ['1h', 59, true],
  ['1h', 61, false],
])('an entry with the lifetime %s is read after %i minutes: %s', (ttl, minutes, isRead) => {
  const cache = new BilledCache()
  const first = cache.billRequest(body(block('a', ttl)), 0)
  const second = cache.billRequest(body(block('a'), block('b', ttl)), minutes * MINUTE)
  expect([first.read, second.read]).toEqual([0, isRead ? first.written : 0])
})

it('nothing is read behind a changed block, nor further back than the provider looks', () => {
  const cache = new BilledCache()
  cache.billRequest(body(block('a'), block('b', '5m')), 0)
  expect(cache.billRequest(body(block('x'), block('b', '5m')), 1).read).toBe(0)
  const many = Array.from({ length: 20 }, (_, index) => block(`${index} `))
  expect(cache.billRequest(body(block('a'), block('b'), ...many, block('c', '5m')), 2).read).toBe(0)
})

it('each token is written at the price of the next marker of an hour, or else of the last marker', () => {
  const cache = new BilledCache()
  const first = cache.billRequest(body(block('a', '1h'), block('b', '5m')), 0)
  expect(first).toMatchObject({ read: 0, writtenForHour: first.written / 2 })
  expect(cache.cost).toBe((first.written / 2) * (RELATIVE_RATES.writeLong + RELATIVE_RATES.writeShort))
  const late = cache.billRequest(body(block('a', '1h'), block('b', '5m')), 6 * MINUTE)
  expect(late).toMatchObject({ read: first.written / 2, written: first.written / 2, writtenForHour: 0 })
})

it('what was read is not kept longer for a marker of an hour: only a write for an hour makes such an entry', () => {
  const cache = new BilledCache()
  cache.billRequest(body(block('a', '5m')), 0)
  cache.billRequest(body(block('a', '1h'), block('b', '5m')), 1 * MINUTE)
  expect(cache.billRequest(body(block('a', '1h'), block('b', '5m')), 8 * MINUTE).read).toBe(0)
})

it('a side call reads the cache and writes nothing', () => {
  const cache = new BilledCache()
  const { written } = cache.billRequest(body(block('a', '5m')), 0)
  expect(cache.billRequest(body(block('a', '5m'), block('b')), 1, false)).toMatchObject({
    read: written,
    written: 0,
  })
  expect(cache.billRequest(body(block('a'), block('b', '5m')), 2).read).toBe(written)
})

it('the lines of an edit are found in a read with line numbers', () => {
  const input = { file_path: '/a.ts', old_string: 'one()\n}\n  two()', new_string: 'x' }
  const [anchor] = listReplacedLines([{ type: 'tool_use', name: 'Edit', input }])
  const shown = collectTextLines({ type: 'tool_result', content: '   1→one()\n   2→}\n   3→  two()' })
  expect(anchor?.lines).toEqual(['one()', 'two()'])
  expect(anchor?.lines.every((line) => shown.has(line))).toBe(true)
})

it('the lines of a patch are those that it removes and those around them, for each file', () => {
  const input =
    '*** Begin Patch\n*** Update File: /a.ts\n@@\n one()\n-two()\n+three()\n*** Update File: /b.ts\n-four()\n*** Add File: /c.ts\n+five()\n*** End Patch'
  expect(listReplacedLines([{ type: 'tool_use', name: 'apply_patch', input: { input } }])).toEqual([
    { path: '/a.ts', lines: ['one()', 'two()'] },
    { path: '/b.ts', lines: ['four()'] },
  ])
})

it('a model reads nothing that another one wrote, and is billed at its own prices', () => {
  const cache = new BilledCache()
  const rates = (input: number) => () => ({ ...RELATIVE_RATES, input, writeShort: input })
  cache.useModel('one', rates(1))
  const { written } = cache.billRequest(body(block('a', '5m')), 0)
  cache.useModel('other', rates(10))
  expect(cache.billRequest(body(block('a', '5m')), 1).read).toBe(0)
  expect(cache.cost).toBe(11 * written)
  cache.useModel('one', rates(1))
  expect(cache.billRequest(body(block('a', '5m')), 2).read).toBe(written)
})
