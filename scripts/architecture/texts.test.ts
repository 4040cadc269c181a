import { expect, it } from 'vitest'
import { checkLength, checkMachinePaths, checkVendorWords } from './texts.ts'

// Put together here so that this file holds none itself.
const path = (...parts: readonly string[]): string => ['', ...parts].join('/')

it.each([
  [`see ${path('home', 'ada', 'shop')}`],
  [`"${path('Users', 'ada')}"`],
  [`(${path('root', 'x')})`],
  [`cd ${path('work', 'main')}`],
  [`'C:${'\\'}Users${'\\'}ada'`],
])('refuses %s', (text) => {
  expect(checkMachinePaths([{ path: 'a.md', text: `\n${text}` }])).toMatchObject([{ file: 'a.md', line: 2 }])
})

it.each([
  ['src/home/page.ts'],
  ['./work/app.ts'],
  ['https://example.com/home/page'],
  ['~/work/app'],
  ['/usr/bin/env node'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a template is what is tested
  ['`${root}/work/app`'],
])('allows %s', (text) => {
  expect(checkMachinePaths([{ path: 'a.md', text }])).toEqual([])
})

it('allows a path that is known to be invented, and that one only', () => {
  const [known, other] = [path('home', 'user'), path('home', 'used')]
  const text = `${known}/x ${other}/y`
  expect(checkMachinePaths([{ path: 'a.md', text }], new Set([known]))).toEqual([
    { file: 'a.md', line: 1, why: `holds a path of one machine: ${other}` },
  ])
})

it('measures a document', () => {
  expect(checkLength({ path: 'README.md', text: 'a\n'.repeat(3) }, 3)).toEqual([])
  expect(checkLength({ path: 'README.md', text: 'a\n'.repeat(4) }, 3)).toEqual([
    { file: 'README.md', line: 0, why: 'has 4 lines; the limit is 3' },
  ])
})

it('finds words of single providers, and exceptions that are no longer needed', () => {
  const sources = [
    { path: 'a.ts', text: 'const one = 1\nreturn { cache_control: marker }' },
    { path: 'b.ts', text: 'const spelt = usage.input_tokens' },
    { path: 'c.ts', text: 'const local_command_output_tokens = 1' },
  ]
  const allowed = new Map([
    ['b.ts', 'usage'],
    ['c.ts', 'usage'],
  ])
  expect(checkVendorWords(sources, 'protocol', allowed)).toEqual([
    { file: 'a.ts', line: 2, why: 'has a word of one protocol: cache_control' },
    { file: 'c.ts', line: 0, why: 'no longer has a word of one protocol: it needs no exception' },
  ])
})
