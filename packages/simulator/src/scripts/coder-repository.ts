/**
 * The simulated repository of the coder script: modules of small functions, each with a test. A function multiplies
 * the length of its input by a limit, and its test expects the result for `abc`, so that edits can break and repair
 * it.
 */
import { createRandom } from '../protocol/clock-and-ids.ts'
import { BYTES_PER_TOKEN } from '../protocol/tokenizer.ts'
import { createSentence } from './filler-text.ts'

/** File contents by path. An edit creates a new map. */
export type Repository = ReadonlyMap<string, string>

interface RepositorySize {
  readonly seed: string
  /** Number of source files, each with a test. */
  readonly files: number
  /** Approximate tokens of one source file. */
  readonly fileTokens: number
}

const MODULE_NAMES = [
  'orders',
  'invoices',
  'customers',
  'payments',
  'shipping',
  'returns',
  'stock',
  'prices',
  'reports',
  'alerts',
  'sessions',
  'exports',
]

export function moduleName(index: number): string {
  const round = Math.floor(index / MODULE_NAMES.length)
  const name = MODULE_NAMES[index % MODULE_NAMES.length] ?? 'module'
  return round === 0 ? name : `${name}${round + 1}`
}

export function sourcePath(module: string): string {
  return `src/${module}.ts`
}

export function testPath(module: string): string {
  return `src/${module}.test.ts`
}

export function functionName(module: string, number: number): string {
  return `${module}Total${number}`
}

/** Returns the source line that sets the limit of a function. Edits change this line. */
export function limitLine(number: number, limit: number | string): string {
  return `  const limit${number} = ${limit}`
}

export function expectationLine(module: string, number: number, limit: number): string {
  return `  expect(${functionName(module, number)}('abc')).toBe(${3 * limit})`
}

export function createRepository({ seed, files, fileTokens }: RepositorySize): Repository {
  const repository = new Map<string, string>()
  for (let index = 0; index < files; index += 1) {
    const module = moduleName(index)
    const limits = createLimits(seed, module, fileTokens)
    repository.set(sourcePath(module), createSource(seed, module, limits))
    repository.set(testPath(module), createTest(seed, module, limits))
  }
  return repository
}

/** Approximate bytes of one function when its file is read, including line numbers. */
const FUNCTION_BYTES = 260

/** Creates random limits for the functions of a module. */
function createLimits(seed: string, module: string, fileTokens: number): readonly number[] {
  const random = createRandom(`${seed}/limits/${module}`)
  const count = Math.max(1, Math.round((fileTokens * BYTES_PER_TOKEN) / FUNCTION_BYTES))
  return Array.from({ length: count }, () => 10 + Math.floor(random() * 80))
}

function createSource(seed: string, module: string, limits: readonly number[]): string {
  const random = createRandom(`${seed}/source/${module}`)
  const functions = limits.map((limit, index) =>
    [
      `/** ${createSentence(random)} ${createSentence(random)} */`,
      `export function ${functionName(module, index + 1)}(input: string): number {`,
      limitLine(index + 1, limit),
      `  return input.length * limit${index + 1}`,
      '}',
      '',
    ].join('\n'),
  )
  return `/** What is known of ${module}. */\n\n${functions.join('\n')}`
}

function createTest(seed: string, module: string, limits: readonly number[]): string {
  const random = createRandom(`${seed}/test/${module}`)
  const tests = limits.map((limit, index) =>
    [
      `// ${createSentence(random)} ${createSentence(random)}`,
      `test('${functionName(module, index + 1)} counts to its limit', () => {`,
      expectationLine(module, index + 1, limit),
      '})',
      '',
    ].join('\n'),
  )
  return `import * as ${module} from './${module}.ts'\n\n${tests.join('\n')}`
}

/** Returns the number of functions in the module. */
export function countFunctions(repository: Repository, module: string): number {
  return repository.get(sourcePath(module))?.match(/^export function /gm)?.length ?? 0
}

/** Returns the limit of a function in the source; null if it is not a number. */
export function readLimit(repository: Repository, module: string, number: number): number | null {
  const found = new RegExp(`^  const limit${number} = (\\d+)$`, 'm').exec(
    repository.get(sourcePath(module)) ?? '',
  )
  return found === null ? null : Number(found[1])
}
