/**
 * An endless sequence of steps for the coder script. A step is one response and does not depend on tool results. The
 * steps form jobs, each of which changes one function: search, read files, make a wrong edit, run failing tests,
 * search again, correct the edit, run passing tests.
 */
import type { JsonObject } from '../protocol/api.ts'
import { createSeededRandom } from '../protocol/clock-and-ids.ts'
import {
  countFunctions,
  createSimulatedRepository,
  formatExpectationLine,
  formatFunctionName,
  formatLimitLine,
  formatModuleName,
  readFunctionLimit,
  type SimulatedRepository,
  toSourcePath,
  toTestPath,
} from './coder-repository.ts'
import { runCoderTool } from './coder-tools.ts'

interface StepOptions {
  readonly seed: string
  readonly files: number
  readonly resultTokens: number
  /** Maximum number of tool calls in one response. */
  readonly parallel: number
}

interface StepCall {
  readonly name: string
  readonly input: JsonObject
}

export interface CoderStep {
  /** Sentence for the response text that says what the coder does in this step. */
  readonly intent: string
  readonly calls: readonly StepCall[]
  /** The simulated repository before the tool calls of this step are run. */
  readonly repository: SimulatedRepository
}

interface StepSequence {
  /** Returns the step with this index. The first step has index 0. */
  stepAt(index: number): CoderStep
}

/**
 * Maximum number of jobs kept in memory. A job is the list of steps that changes one function. Older jobs are
 * computed again when needed.
 */
const MAX_JOBS_IN_MEMORY = 64

export function createCoderSteps(options: StepOptions): StepSequence {
  const { seed, files, resultTokens } = options
  const initial = createSimulatedRepository({ seed, files, fileTokens: resultTokens })
  const kept = new Map<number, readonly CoderStep[]>()
  let next = 0
  let repository = initial

  function job(number: number): readonly CoderStep[] {
    if (number < next && !kept.has(number)) [next, repository] = [0, initial]
    for (; next <= number; next += 1) {
      const made = createJobSteps(next, repository, options)
      repository = made.repository
      kept.set(next, made.steps)
      kept.delete(next - MAX_JOBS_IN_MEMORY)
    }
    return kept.get(number) ?? []
  }

  /** Number of steps in a job, which is the same for all jobs. */
  const { length } = job(0)
  return {
    stepAt(index) {
      const step = job(Math.floor(index / length))[index % length]
      if (step === undefined) throw new RangeError(`There is no step ${index}.`)
      return step
    },
  }
}

interface LimitJob {
  readonly number: number
  readonly module: string
  readonly function: number
  readonly from: number
  readonly to: number
}

function createJob(number: number, repository: SimulatedRepository, { seed, files }: StepOptions): LimitJob {
  const module = formatModuleName(number % files)
  const functions = countFunctions(repository, module)
  const which = 1 + ((Math.floor(number / files) * 7) % functions)
  const from = readFunctionLimit(repository, module, which) ?? 10
  const random = createSeededRandom(`${seed}/job/${number}`)
  return { number, module, function: which, from, to: from + 2 + Math.floor(random() * 9) }
}

interface JobMove {
  readonly intent: string
  readonly calls: readonly StepCall[]
}

function createJobSteps(
  number: number,
  before: SimulatedRepository,
  options: StepOptions,
): { readonly steps: readonly CoderStep[]; readonly repository: SimulatedRepository } {
  const moves = listMoves(createJob(number, before, options), options)
  const size = { seed: options.seed, outputTokens: 0 }
  let repository = before
  const steps = moves.flatMap(({ intent, calls }) =>
    groupItems(calls, options.parallel).map((group) => {
      const step = { intent, calls: group, repository }
      for (const call of group.filter(({ name }) => name === 'Edit'))
        repository = runCoderTool(repository, { id: '', ...call }, size).repository
      return step
    }),
  )
  return { steps, repository }
}

function groupItems<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  const count = Math.ceil(items.length / size)
  return Array.from({ length: count }, (_, index) => items.slice(index * size, (index + 1) * size))
}

function listMoves(job: LimitJob, options: StepOptions): readonly JobMove[] {
  const { module, function: which, from, to } = job
  const name = formatFunctionName(module, which)
  const wrong = chooseWrongLimit(job)
  const test = toolCall('Bash', {
    command: `npm test -- ${module}`,
    description: `Run the tests of ${module}`,
  })
  const mend = editCall(toSourcePath(module), formatLimitLine(which, wrong), formatLimitLine(which, to))
  return [
    {
      intent: `I look for every use of ${name} and note what is to be done`,
      calls: [todoCall(job, 'in_progress'), toolCall('Grep', { pattern: name, path: 'src' })],
    },
    { intent: `I read ${module} and what stands around it`, calls: listReadCalls(job, options) },
    {
      intent: `I raise the limit of ${name} from ${from} to ${to}, in the source and in its test`,
      calls: [
        editCall(toSourcePath(module), formatLimitLine(which, from), formatLimitLine(which, wrong)),
        editCall(
          toTestPath(module),
          formatExpectationLine(module, which, from),
          formatExpectationLine(module, which, to),
        ),
      ],
    },
    { intent: `I run the tests of ${module}`, calls: [test] },
    {
      intent: `The tests fail: I look closer at ${toSourcePath(module)}`,
      calls: [toolCall('Grep', { pattern: `limit${which}\\b`, path: toSourcePath(module) })],
    },
    { intent: `I put the value itself into ${name}, which is what the test expects`, calls: [mend] },
    { intent: `I run the tests of ${module} again`, calls: [test] },
    { intent: `${name} is done: I tick it off`, calls: [todoCall(job, 'completed')] },
  ]
}

/**
 * Returns the value for the wrong edit: alternately a call of an undefined function and a number that is off by one.
 */
function chooseWrongLimit({ number, from, to }: LimitJob): string | number {
  return number % 2 === 0 ? `raise(${from}, ${to})` : to - 1
}

/**
 * Lists calls that read the module, its test and other modules: at most as many as one response may have, but at
 * least two.
 */
function listReadCalls({ number, module }: LimitJob, { files, parallel }: StepOptions): readonly StepCall[] {
  const others = Array.from({ length: files - 1 }, (_, index) =>
    formatModuleName((number + index + 1) % files),
  )
  const paths = [toSourcePath(module), toTestPath(module), ...others.map(toSourcePath)]
  return paths.slice(0, Math.max(2, parallel)).map((file_path) => toolCall('Read', { file_path }))
}

function todoCall(job: LimitJob, status: 'in_progress' | 'completed'): StepCall {
  const name = formatFunctionName(job.module, job.function)
  const now = { content: `Raise the limit of ${name} to ${job.to}`, status, activeForm: `Raising ${name}` }
  const next = { content: 'Raise the limit of the next function', status: 'pending', activeForm: 'Going on' }
  return toolCall('TodoWrite', { todos: [now, next] })
}

function editCall(file_path: string, old_string: string, new_string: string): StepCall {
  return toolCall('Edit', { file_path, old_string, new_string })
}

function toolCall(name: string, input: JsonObject): StepCall {
  return { name, input }
}
