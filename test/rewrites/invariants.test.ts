/** The table of invariants names tests that exist, for each of them. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const text = readFileSync(`${root}docs/invariants.md`, 'utf8')

interface Row {
  readonly number: number
  readonly tests: readonly { readonly file: string; readonly name: string }[]
}

const rows: readonly Row[] = [...text.matchAll(/^\| (\d+) \| [^|]+ \| (.+) \|$/gm)].map(
  ([, number, cell = '']) => ({
    number: Number(number),
    tests: [...cell.matchAll(/`([^`]+\.ts)`: “([^”]+)”/g)].map(([, file = '', name = '']) => ({
      file,
      name,
    })),
  }),
)

/** Null where the words stand in the file. */
function missing({ file, name }: Row['tests'][number]): string | null {
  if (!existsSync(`${root}${file}`)) return `${file} is not there`
  return readFileSync(`${root}${file}`, 'utf8').includes(name) ? null : `${file} does not say “${name}”`
}

describe('the table of invariants', () => {
  it('has all of them, in order', () => {
    expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
  })

  it('names at least one test for each, and only such as exist', () => {
    expect(rows.filter(({ tests }) => tests.length === 0)).toEqual([])
    expect(rows.flatMap(({ tests }) => tests.flatMap((test) => missing(test) ?? []))).toEqual([])
  })
})
