/**
 * An endless sequence of steps for the coder script. A step is one response and does not depend on tool results. The
 * steps form jobs, each of which changes one function: search, read files, make a wrong edit, run failing tests,
 * search again, correct the edit, run passing tests.
 */

import { createSeededRandom } from '../protocol/clock-and-ids.ts'
import type { JsonObject } from '../protocol/messages-request.ts'
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
  /**
   * `simulated`: the files exist before the first step, and `npm test` is simulated. `client`: the files are on the disk
   * of a client, so the first steps write them, and the tests are commands that any shell can run.
   */
  readonly place: 'simulated' | 'client'
  /** `each-job`: each job begins by reading its files. `unseen`: it does not. */
  readonly reads: 'each-job' | 'unseen'
}

/** A tool call, named like the coder's own tools or `Write`. */
export interface StepCall {
  readonly name: string
  readonly input: JsonObject
  /** Files that are wrong if this call fails, although the call itself does not read or write them. */
  readonly checks?: readonly string[]
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
  const { seed, files, resultTokens, place } = options
  const created = createSimulatedRepository({ seed, files, fileTokens: resultTokens })
  const initial = place === 'simulated' ? created : new Map([...created, [NOTES_PATH, formatNotes()]])
  const setup = place === 'simulated' ? [] : createSetupSteps(initial, options)
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
      const later = index - setup.length
      const step = later < 0 ? setup[index] : job(Math.floor(later / length))[later % length]
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

/** Creates the steps that write all files to a client's disk. */
function createSetupSteps(files: SimulatedRepository, options: StepOptions): readonly CoderStep[] {
  const calls = [...files].map(([path, content]) => writeCall(path, content))
  return createSteps([{ intent: 'I write the files that I work on', calls }], new Map(), options).steps
}

interface CreatedSteps {
  readonly steps: readonly CoderStep[]
  /** The repository after the last step. */
  readonly repository: SimulatedRepository
}

function createJobSteps(number: number, before: SimulatedRepository, options: StepOptions): CreatedSteps {
  return createSteps(listMoves(createJob(number, before, options), options), before, options)
}

function createSteps(
  moves: readonly JobMove[],
  before: SimulatedRepository,
  options: StepOptions,
): CreatedSteps {
  const size = { seed: options.seed, outputTokens: 0 }
  let repository = before
  const steps = moves.flatMap(({ intent, calls }) =>
    groupItems(calls, options.parallel).map((group) => {
      const step = { intent, calls: group, repository }
      for (const call of group.filter(({ name }) => name === 'Edit' || name === 'Write'))
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
  const test = testCall(job, options)
  const mend = editCall(toSourcePath(module), formatLimitLine(which, wrong), formatLimitLine(which, to))
  return [
    {
      intent: `I look for every use of ${name} and note what is to be done`,
      calls: [todoCall(job, 'in_progress'), toolCall('Grep', { pattern: name, path: 'src' })],
    },
    ...(options.reads === 'unseen'
      ? []
      : [{ intent: `I read ${module} and what stands around it`, calls: listReadCalls(job, options) }]),
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
    { intent: `I run the tests of ${module}`, calls: [testCall(job, options)] },
    {
      intent: `The tests fail: I look closer at ${toSourcePath(module)}`,
      calls: [toolCall('Grep', { pattern: `limit${which}\\b`, path: toSourcePath(module) })],
    },
    { intent: `I put the value itself into ${name}, which is what the test expects`, calls: [mend] },
    {
      intent: `I run the tests of ${module} again`,
      calls: [{ ...test, checks: [toSourcePath(module), toTestPath(module)] }],
    },
    {
      intent: `${name} is done: I tick it off`,
      calls: [todoCall(job, 'completed'), ...(options.place === 'simulated' ? [] : listNoteCalls(job))],
    },
  ]
}

/**
 * Runs the tests of a module. On a client's disk, functions cannot be run. There, the call prints the test file, so
 * that the result has the size of a test run, and then compares the limits in source and test.
 */
function testCall({ module, function: which, to }: LimitJob, { place }: StepOptions): StepCall {
  const [source, test] = [toSourcePath(module), toTestPath(module)]
  const command = [
    `cat ${test} && grep -nxF "${formatLimitLine(which, to)}" ${source}`,
    `grep -nxF "${formatExpectationLine(module, which, to)}" ${test} || { echo "FAIL ${module}"; exit 1; }`,
  ].join(' && ')
  return toolCall('Bash', {
    command: place === 'simulated' ? `npm test -- ${module}` : command,
    description: `Run the tests of ${module}`,
  })
}

// Two kinds of notes: one file that grows with each job, and one file per module that each job on the module rewrites.

export const NOTES_PATH = 'NOTES.md'
const NEXT_NOTE = '<!-- next note -->'

function formatNotes(): string {
  return `# Notes\n\n${NEXT_NOTE}\n`
}

function listNoteCalls(job: LimitJob): readonly StepCall[] {
  const { number, module, function: which, from, to } = job
  const note = `- Job ${number + 1}: ${formatFunctionName(module, which)} now has the limit ${to}.`
  const report = `# ${module}\n\nJob ${number + 1} raised limit ${which} from ${from} to ${to}.\n`
  return [editCall(NOTES_PATH, NEXT_NOTE, `${note}\n${NEXT_NOTE}`), writeCall(`reports/${module}.md`, report)]
}

/**
 * Returns the value for the wrong edit: alternately a call of an undefined function and a number that is off by one.
 */
function chooseWrongLimit({ number, from, to }: LimitJob): string | number {
  return number % 2 === 0 ? `raise(${from}, ${to})` : to - 1
}

/** Lists calls that read the module, its test and other modules: as many as one response may have, but at least two. */
function listReadCalls({ number, module }: LimitJob, { files, parallel }: StepOptions): readonly StepCall[] {
  const others = Array.from({ length: files - 1 }, (_, index) =>
    formatModuleName((number + index + 1) % files),
  )
  const paths = [toSourcePath(module), toTestPath(module), ...others.map(toSourcePath)]
  return paths.slice(0, Math.max(2, parallel)).map((file_path) => toolCall('Read', { file_path }))
}

/**
 * Lists the files whose lines a step will edit although none of the texts shows them. A text must also show the line
 * before, because two modules may have the same limit.
 */
export function listFilesWithUnseenEdits(
  { calls, repository }: CoderStep,
  texts: readonly string[],
): readonly string[] {
  const plain = texts.map((text) => text.replaceAll(/^ *\d+\t/gm, ''))
  const unseen = calls
    .filter(({ name }) => name === 'Edit')
    .filter(({ input }) => {
      const [file, lines] = [repository.get(String(input.file_path)) ?? '', String(input.old_string)]
      const at = file.indexOf(`\n${lines}\n`)
      const wanted = file.slice(file.lastIndexOf('\n', at - 1) + 1, at + 1 + lines.length)
      return !plain.some((text) => text.includes(wanted))
    })
    .map(({ input }) => String(input.file_path))
  return [...new Set(unseen)]
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

function writeCall(file_path: string, content: string): StepCall {
  return toolCall('Write', { file_path, content })
}

function toolCall(name: string, input: JsonObject): StepCall {
  return { name, input }
}
