import { readFileSync } from 'node:fs'
import { FITTED_CONSTANTS } from '@tidemark/wire/catalogue/estimator-constants'
import { expect, it } from 'vitest'
import { replaceConstants } from './constants-file.ts'

const FILE = new URL('../../packages/wire/src/catalogue/estimator-constants.ts', import.meta.url)
const FROM = {
  sessions: 10,
  turns: 1723,
  models: ['claude-opus-4-5', 'claude-opus-4-6', 'claude-sonnet-4-5'],
  asOf: '2026-11-15',
}

it('constants that are fitted again stand in the file of the catalogue, and nothing else changes', () => {
  const text = readFileSync(FILE, 'utf8')
  const written = replaceConstants(text, FITTED_CONSTANTS, FROM)
  // The formatter removes quotes and adds commas afterwards.
  const plain = (source: string): string =>
    source.replaceAll(/"(\w+)":/g, '$1:').replaceAll(/,(?=\n *\})/g, '')
  expect(plain(written)).toBe(plain(text))
  expect(replaceConstants(text, { ...FITTED_CONSTANTS, perText: 9.5 }, FROM)).toContain('"perText": 9.5')
})

it('a file without constants is refused', () => {
  expect(() => replaceConstants('export const OTHER = 1\n', FITTED_CONSTANTS, FROM)).toThrow(
    /FITTED_CONSTANTS/,
  )
})
