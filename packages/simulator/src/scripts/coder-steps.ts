/**
 * The steps of the coder, without end: it raises the limit of one function after the other. Each such job is a
 * search, some reading, a wrong edit, failing tests, another search, the correct edit, and passing tests. A step is
 * one response and does not depend on the tool results of the host.
 */
import type { JsonObject } from '../protocol/api.ts'
import { seededRandom } from '../protocol/clock-and-ids.ts'
import {
  expectationLine,
  functionCount,
  functionName,
  limitIn,
  limitLine,
  makeRepository,
  moduleName,
  type Repository,
  sourcePath,
  testPath,
} from './coder-repository.ts'
import { runTool } from './coder-tools.ts'

interface StepOptions {
  readonly seed: string
  readonly files: number
  readonly resultTokens: number
  /** Maximum number of calls in one response. */
  readonly parallel: number
}

interface StepCall {
  readonly name: string
  readonly input: JsonObject
}

export interface Step {
  /** One sentence for the text of the response. */
  readonly intent: string
  readonly calls: readonly StepCall[]
  /** The repository before the calls are run. */
  readonly repository: Repository
}

interface Steps {
  /** 0 for the first. */
  at(index: number): Step
}

/** Jobs in memory. Older ones are computed again when they are needed. */
const KEPT_JOBS = 64

export function createSteps(options: StepOptions): Steps {
  const { seed, files, resultTokens: fileTokens } = options
  const initial = makeRepository({ seed, files, fileTokens })
  const kept = new Map<number, readonly Step[]>()
  let next = 0
  let repository = initial

  function job(number: number): readonly Step[] {
    if (number < next && !kept.has(number)) [next, repository] = [0, initial]
    for (; next <= number; next += 1) {
      const made = jobSteps(next, repository, options)
      repository = made.repository
      kept.set(next, made.steps)
      kept.delete(next - KEPT_JOBS)
    }
    return kept.get(number) ?? []
  }

  /** All jobs have the same number of steps. */
  const { length } = job(0)
  return {
    at(index) {
      const step = job(Math.floor(index / length))[index % length]
      if (step === undefined) throw new RangeError(`There is no step ${index}.`)
      return step
    },
  }
}

interface Job {
  readonly number: number
  readonly module: string
  readonly function: number
  readonly from: number
  readonly to: number
}

function jobOf(number: number, repository: Repository, { seed, files }: StepOptions): Job {
  const module = moduleName(number % files)
  const functions = functionCount(repository, module)
  const which = 1 + ((Math.floor(number / files) * 7) % functions)
  const from = limitIn(repository, module, which) ?? 10
  const random = seededRandom(`${seed}/job/${number}`)
  return { number, module, function: which, from, to: from + 2 + Math.floor(random() * 9) }
}

interface Move {
  readonly intent: string
  readonly calls: readonly StepCall[]
}

function jobSteps(
  number: number,
  before: Repository,
  options: StepOptions,
): { readonly steps: readonly Step[]; readonly repository: Repository } {
  const moves = movesOf(jobOf(number, before, options), options)
  const size = { seed: options.seed, outputTokens: 0 }
  let repository = before
  const steps = moves.flatMap(({ intent, calls }) =>
    inGroups(calls, options.parallel).map((group) => {
      const step = { intent, calls: group, repository }
      for (const call of group.filter(({ name }) => name === 'Edit'))
        repository = runTool(repository, { id: '', ...call }, size).repository
      return step
    }),
  )
  return { steps, repository }
}

function inGroups<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  const count = Math.ceil(items.length / size)
  return Array.from({ length: count }, (_, index) => items.slice(index * size, (index + 1) * size))
}

function movesOf(job: Job, options: StepOptions): readonly Move[] {
  const { module, function: which, from, to } = job
  const name = functionName(module, which)
  const wrong = wrongLimit(job)
  const test = call('Bash', { command: `npm test -- ${module}`, description: `Run the tests of ${module}` })
  const mend = edit(sourcePath(module), limitLine(which, wrong), limitLine(which, to))
  return [
    {
      intent: `I look for every use of ${name} and note what is to be done`,
      calls: [todos(job, 'in_progress'), call('Grep', { pattern: name, path: 'src' })],
    },
    { intent: `I read ${module} and what stands around it`, calls: readings(job, options) },
    {
      intent: `I raise the limit of ${name} from ${from} to ${to}, in the source and in its test`,
      calls: [
        edit(sourcePath(module), limitLine(which, from), limitLine(which, wrong)),
        edit(testPath(module), expectationLine(module, which, from), expectationLine(module, which, to)),
      ],
    },
    { intent: `I run the tests of ${module}`, calls: [test] },
    {
      intent: `The tests fail: I look closer at ${sourcePath(module)}`,
      calls: [call('Grep', { pattern: `limit${which}\\b`, path: sourcePath(module) })],
    },
    { intent: `I put the value itself into ${name}, which is what the test expects`, calls: [mend] },
    { intent: `I run the tests of ${module} again`, calls: [test] },
    { intent: `${name} is done: I tick it off`, calls: [todos(job, 'completed')] },
  ]
}

/** Alternates between a name that is not defined and a value that is off by one. */
function wrongLimit({ number, from, to }: Job): string | number {
  return number % 2 === 0 ? `raise(${from}, ${to})` : to - 1
}

/** Reads the module, its test and other modules, as many as one response may hold, at least two. */
function readings({ number, module }: Job, { files, parallel }: StepOptions): readonly StepCall[] {
  const others = Array.from({ length: files - 1 }, (_, index) => moduleName((number + index + 1) % files))
  const paths = [sourcePath(module), testPath(module), ...others.map(sourcePath)]
  return paths.slice(0, Math.max(2, parallel)).map((file_path) => call('Read', { file_path }))
}

function todos(job: Job, status: 'in_progress' | 'completed'): StepCall {
  const name = functionName(job.module, job.function)
  const now = { content: `Raise the limit of ${name} to ${job.to}`, status, activeForm: `Raising ${name}` }
  const next = { content: 'Raise the limit of the next function', status: 'pending', activeForm: 'Going on' }
  return call('TodoWrite', { todos: [now, next] })
}

function edit(file_path: string, old_string: string, new_string: string): StepCall {
  return call('Edit', { file_path, old_string, new_string })
}

function call(name: string, input: JsonObject): StepCall {
  return { name, input }
}
