/**
 * The simulated repository of the coder script: source files with small functions, and a test file for each. A
 * function multiplies the length of its input by a constant, called its limit. Its test checks the result, so an edit
 * of the limit can break or repair the test.
 */
import { createSeededRandom } from '../protocol/clock-and-ids.ts'
import { BYTES_PER_TOKEN } from '../protocol/tokenizer.ts'
import { createSentence } from './filler-text.ts'

/** File contents by path. An edit creates a new map. */
export type SimulatedRepository = ReadonlyMap<string, string>

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

export function formatModuleName(index: number): string {
  const round = Math.floor(index / MODULE_NAMES.length)
  const name = MODULE_NAMES[index % MODULE_NAMES.length] ?? 'module'
  return round === 0 ? name : `${name}${round + 1}`
}

export function toSourcePath(module: string): string {
  return `src/${module}.ts`
}

export function toTestPath(module: string): string {
  return `src/${module}.test.ts`
}

export function formatFunctionName(module: string, number: number): string {
  return `${module}Total${number}`
}

/** Returns the source line that defines the limit of a function. Edits change the constant in this line. */
export function formatLimitLine(number: number, limit: number | string): string {
  return `  const limit${number} = ${limit}`
}

export function formatExpectationLine(module: string, number: number, limit: number): string {
  return `  expect(${formatFunctionName(module, number)}('abc')).toBe(${3 * limit})`
}

export function createSimulatedRepository({ seed, files, fileTokens }: RepositorySize): SimulatedRepository {
  const repository = new Map<string, string>()
  for (let index = 0; index < files; index += 1) {
    const module = formatModuleName(index)
    const limits = createLimits(seed, module, fileTokens)
    repository.set(toSourcePath(module), createSource(seed, module, limits))
    repository.set(toTestPath(module), createTest(seed, module, limits))
  }
  return repository
}

/** Approximate size of one function in bytes when its file is read with line numbers. */
const FUNCTION_BYTES = 260

/** Creates a random limit for each function of a module. The limit is the constant in the source code. */
function createLimits(seed: string, module: string, fileTokens: number): readonly number[] {
  const random = createSeededRandom(`${seed}/limits/${module}`)
  const count = Math.max(1, Math.round((fileTokens * BYTES_PER_TOKEN) / FUNCTION_BYTES))
  return Array.from({ length: count }, () => 10 + Math.floor(random() * 80))
}

function createSource(seed: string, module: string, limits: readonly number[]): string {
  const random = createSeededRandom(`${seed}/source/${module}`)
  const functions = limits.map((limit, index) =>
    [
      `/** ${createSentence(random)} ${createSentence(random)} */`,
      `export function ${formatFunctionName(module, index + 1)}(input: string): number {`,
      formatLimitLine(index + 1, limit),
      `  return input.length * limit${index + 1}`,
      '}',
      '',
    ].join('\n'),
  )
  return `/** What is known of ${module}. */\n\n${functions.join('\n')}`
}

function createTest(seed: string, module: string, limits: readonly number[]): string {
  const random = createSeededRandom(`${seed}/test/${module}`)
  const tests = limits.map((limit, index) =>
    [
      `// ${createSentence(random)} ${createSentence(random)}`,
      `test('${formatFunctionName(module, index + 1)} counts to its limit', () => {`,
      formatExpectationLine(module, index + 1, limit),
      '})',
      '',
    ].join('\n'),
  )
  return `import * as ${module} from './${module}.ts'\n\n${tests.join('\n')}`
}

/** Returns the number of functions in a module of the simulated repository. */
export function countFunctions(repository: SimulatedRepository, module: string): number {
  return repository.get(toSourcePath(module))?.match(/^export function /gm)?.length ?? 0
}

/** Returns the limit that the source code defines for a function; null if there is none, or if it is not a number. */
export function readFunctionLimit(
  repository: SimulatedRepository,
  module: string,
  number: number,
): number | null {
  const found = new RegExp(`^  const limit${number} = (\\d+)$`, 'm').exec(
    repository.get(toSourcePath(module)) ?? '',
  )
  return found === null ? null : Number(found[1])
}
