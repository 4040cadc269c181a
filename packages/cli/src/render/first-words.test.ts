import { expect, it } from 'vitest'
import { firstWords } from './first-words.ts'

it.each([
  ['short', 10, 'short'],
  ['exactly ten', 11, 'exactly ten'],
  ['a longer text', 8, 'a longe…'],
  ['two\n  lines\tand tabs ', 40, 'two lines and tabs'],
  ['\u001b[2J\u001b]0;title\u0007gone\u009b1m', 40, '[2J ]0;title gone 1m'],
  ['👩‍💻👩‍💻', 2, '👩…'],
  ['text', 0, '…'],
])('%j in %d', (text, width, expected) => {
  expect(firstWords(text, width)).toBe(expected)
})
