/** `npm test` in the make-believe repository: it reads sources and expectations and says which do not agree. */
import { BYTES_PER_TOKEN } from '../../tokenizer.ts'
import { prose } from '../prose.ts'
import { functionName, type Repository, sourcePath, testPath } from './repository.ts'

export interface TestRun {
  readonly output: string
  readonly failed: number
}

export interface TestRunSize {
  readonly seed: string
  readonly outputTokens: number
}

export function runTests(repository: Repository, modules: readonly string[], size: TestRunSize): TestRun {
  const cases = modules.flatMap((module) => casesOf(repository, module))
  const failures = cases.flatMap(({ failure }) => failure ?? [])
  const rest = cases.length - failures.length
  const tally = failures.length === 0 ? `${rest} passed` : `${failures.length} failed | ${rest} passed`
  const rows = cases.map(({ row }) => row)
  const end = [
    ...failures,
    ` Tests  ${tally} (${cases.length})`,
    ...(failures.length > 0 ? ['Exit code 1'] : []),
  ]
  return { output: padded(rows, end, size).join('\n'), failed: failures.length }
}

interface Case {
  readonly row: string
  readonly failure?: string
}

function casesOf(repository: Repository, module: string): readonly Case[] {
  const expected = expectationsIn(repository.get(testPath(module)) ?? '')
  return limitsIn(repository.get(sourcePath(module)) ?? '').map(({ number, written, line }, index) => {
    const name = `${testPath(module)} > ${functionName(module, number)} counts to its limit`
    const error = errorOf(written, expected[index] ?? Number.NaN)
    if (error === null) return { row: ` ✓ ${name}` }
    const place = ` ❯ ${functionName(module, number)} ${sourcePath(module)}:${line}`
    return { row: ` ✗ ${name}`, failure: ` FAIL  ${name}\n${error}\n${place}` }
  })
}

interface WrittenLimit {
  readonly number: number
  /** What stands behind the `=`. */
  readonly written: string
  readonly line: number
}

function limitsIn(source: string): readonly WrittenLimit[] {
  return source.split('\n').flatMap((row, index) => {
    const [, number, written] = /^ {2}const limit(\d+) = (.*)$/.exec(row) ?? []
    return number === undefined || written === undefined
      ? []
      : [{ number: Number(number), written, line: index + 1 }]
  })
}

function expectationsIn(test: string): readonly number[] {
  return [...test.matchAll(/\.toBe\((\d+)\)/g)].map(([, value]) => Number(value))
}

function errorOf(written: string, expected: number): string | null {
  if (!/^\d+$/.test(written)) return `ReferenceError: ${written.split('(')[0]} is not defined`
  const value = 3 * Number(written)
  return value === expected ? null : `AssertionError: expected ${value} to be ${expected}`
}

/** A run that says a lot says it first, and its verdict last. */
function padded(rows: readonly string[], end: readonly string[], size: TestRunSize): readonly string[] {
  const written = Buffer.byteLength([...rows, ...end].join('\n')) / BYTES_PER_TOKEN
  const said = prose(`${size.seed}/output`, Math.max(0, size.outputTokens - written))
  return [...(said === '' ? [] : said.replaceAll('. ', '.\n').split('\n')), ...rows, ...end]
}
