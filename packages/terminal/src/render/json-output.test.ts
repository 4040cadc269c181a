import { expect, it } from 'vitest'
import { formatJson } from './json-output.ts'

it('JSON for the terminal has no character that a terminal executes or shows in another order, and the same value', () => {
  const unsafe = [
    '\u007f',
    '\u009b2J',
    '\u202e',
    '\u2066',
    '\u200b',
    '\u2028',
    '\ufeff',
    '\u{e0041}',
    '\u001b[31m',
  ]
  const value = { text: `safe: é 字 😀 ${unsafe.join(' ')}`, 'name\u009d': 1 }
  for (const text of [formatJson(value), formatJson(value, 2)]) {
    expect(unsafe.filter((each) => text.includes(each))).toEqual([])
    expect(text).toContain('safe: é 字 😀')
    expect(JSON.parse(text)).toEqual(value)
  }
})
