/**
 * The job of the tour: what the user asks for, and the script that plays the model. The script is fixed; the tools run
 * its calls on real files.
 */
import { createSummarizer, type Reply, type Script, withSummaries } from '@tidemark/simulator'

/** The user's first message. The tour checks that the last request still has it verbatim. */
export const FIRST_PROMPT =
  'Customers say that our invoices are wrong by a cent. Find the cause and fix it, until all tests pass. Two rules: keep the names of the public functions, and add no dependency.'
const SECOND_PROMPT =
  'I am back. Now the discounts as well, please, and then check the orders of the whole week.'

/** The prompts of the user, each with the simulated minutes that pass before it. */
export const TOUR_PROMPTS: readonly { readonly text: string; readonly minutesBefore: number }[] = [
  { text: FIRST_PROMPT, minutesBefore: 0 },
  { text: SECOND_PROMPT, minutesBefore: 20 },
]

/** The todo that is still open when the job ends. */
export const OPEN_TODO = 'Send support the list of invoices to correct'

/** A text that only the first test run prints. The tour checks that it is not in the last request but is found in the log. */
export const EARLY_TEST_OUTPUT = '1998 !== 1999'

/** The files that the job edits. */
export const EDITED_FILES: readonly string[] = ['src/money.js', 'CHANGES.md']

/** Names of the tools that the model gets in every run of the tour. */
export const TOUR_TOOL_NAMES: readonly string[] = [
  'Read',
  'Write',
  'Edit',
  'Bash',
  'Grep',
  'Glob',
  'TodoWrite',
]

/** The settings of one run of the job. */
export interface TourJobSettings {
  readonly model: string
  readonly window: number
  readonly maxTokens: number
  readonly signal?: AbortSignal | undefined
}

/** The settings of the run with Tidemark, and of its session when the user tries it. */
export const TOUR_SETTINGS = { model: 'claude-sonnet-5-5', window: 30_000, maxTokens: 4_000 } as const

interface JobCall {
  readonly name: string
  readonly input: { readonly [field: string]: unknown }
}

/** One reply of the model: a sentence, and the tool calls that follow it. Without calls, it ends the turn. */
interface JobStep {
  readonly say: string
  readonly calls: readonly JobCall[]
}

const call = (name: string, input: JobCall['input']): JobCall => ({ name, input })
const read = (file_path: string): JobCall => call('Read', { file_path })
const runTests = call('Bash', { command: 'node --test', description: 'Run the tests' })
const replayWeek = call('Bash', {
  command: 'node bin/replay.js',
  description: 'Replay the orders of the week',
})
const report = (day: string): JobCall => read(`reports/${day}.txt`)

const TODOS = [
  'Reproduce the wrong cent',
  'Find the cause in the prices',
  'Find the cause in the discounts',
  'Check the orders of the whole week',
  'Note the fix in CHANGES.md',
  OPEN_TODO,
]

/** Writes the todo list with the first `done` items completed. */
function writeTodos(done: number): JobCall {
  const todos = TODOS.map((content, index) => ({
    content,
    status: index < done ? 'completed' : index === done && content !== OPEN_TODO ? 'in_progress' : 'pending',
  }))
  return call('TodoWrite', { todos })
}

const ROUND_PRICES = call('Edit', {
  file_path: 'src/money.js',
  old_string: 'return Math.floor(euros * 100)',
  new_string: 'return Math.round(euros * 100)',
})

const SPLIT_WITHOUT_REST = call('Edit', {
  file_path: 'src/money.js',
  old_string: '  return weights.map((weight) => Math.floor((cents * weight) / sum))',
  new_string: `  let [weightSoFar, centsSoFar] = [0, 0]
  return weights.map((weight) => {
    weightSoFar += weight
    const share = Math.round((cents * weightSoFar) / sum) - centsSoFar
    centsSoFar += share
    return share
  })`,
})

const CHANGES = `# Changes
- Prices are rounded to the nearest cent. 19.99 was read as 19.98.
- The shares of a discount add up to the discount. Up to a cent a line was lost.
`

const STEPS: readonly JobStep[] = [
  { say: 'I note what is to be done.', calls: [writeTodos(0)] },
  { say: 'First I run the tests.', calls: [runTests] },
  { say: 'I look at what there is.', calls: [call('Glob', { pattern: '**/*' }), read('README.md')] },
  { say: 'The invoice and what it uses.', calls: [read('src/invoice.js'), read('src/cart.js')] },
  { say: 'Money and discounts.', calls: [read('src/money.js'), read('src/discount.js')] },
  { say: 'What the tests expect.', calls: [read('test/invoice.test.js')] },
  { say: 'What customers wrote.', calls: [read('notes/support.md')] },
  { say: 'I replay the orders of the week.', calls: [replayWeek] },
  { say: 'What went wrong on Monday?', calls: [report('monday')] },
  { say: 'I want to see how the replay computes.', calls: [read('bin/replay.js'), read('src/tax.js')] },
  { say: 'Tuesday, to compare.', calls: [report('tuesday')] },
  {
    say: 'Where is anything rounded?',
    calls: [call('Grep', { pattern: 'Math\\.', path: 'src', output_mode: 'content' })],
  },
  { say: 'Wednesday, to compare orders without a discount.', calls: [report('wednesday')] },
  { say: 'Thursday, because support named it.', calls: [report('thursday')] },
  { say: 'All wrong invoices at once.', calls: [call('Bash', { command: 'grep -h DIFFERS reports/*.txt' })] },
  { say: '19.99 * 100 is 1998.99…, and floor makes it 1998. I round it.', calls: [ROUND_PRICES] },
  { say: 'Do the tests agree?', calls: [runTests] },
  { say: 'The prices are right now. I note it.', calls: [writeTodos(2)] },
  { say: 'I replay the week with the fix.', calls: [replayWeek] },
  {
    say: 'What is left of it?',
    calls: [
      report('monday'),
      report('tuesday'),
      call('Read', { file_path: 'reports/wednesday.txt', limit: 30 }),
    ],
  },
  {
    say: 'Prices are fixed: 19.99 was cut to 19.98 and is rounded now. Invoices with a discount are still off by a cent.',
    calls: [],
  },
  { say: 'Now the discounts.', calls: [read('src/discount.js')] },
  { say: 'Who splits amounts?', calls: [call('Grep', { pattern: 'splitCents', output_mode: 'content' })] },
  { say: 'Thursday has many discounts.', calls: [report('thursday')] },
  { say: 'Friday, to be sure.', calls: [report('friday')] },
  { say: 'I read the split once more before I change it.', calls: [read('src/money.js')] },
  { say: 'Each share is cut, so cents get lost. I split without a rest.', calls: [SPLIT_WITHOUT_REST] },
  { say: 'The tests again.', calls: [runTests] },
  { say: 'All tests pass. I note it.', calls: [writeTodos(3)] },
  { say: 'I replay the week for the last time.', calls: [replayWeek] },
  { say: 'Monday first.', calls: [report('monday')] },
  { say: 'Then Tuesday.', calls: [report('tuesday')] },
  { say: 'Then Wednesday.', calls: [report('wednesday')] },
  { say: 'Then Thursday.', calls: [report('thursday')] },
  {
    say: 'And Friday, with the wishes of the bookkeeper.',
    calls: [report('friday'), read('notes/support.md')],
  },
  {
    say: 'No invoice differs. I write it down.',
    calls: [call('Write', { file_path: 'CHANGES.md', content: CHANGES })],
  },
  { say: 'One todo is left for you.', calls: [writeTodos(5)] },
  { say: 'A last run of the tests.', calls: [runTests] },
  {
    say: 'Done: prices are rounded, discounts add up, and no order of the week differs. No function was renamed, and there is no new dependency.',
    calls: [],
  },
]

/** The text of the reply before which the provider refuses the prompt once. */
const REFUSED_STEP = 'Friday, to be sure.'

interface TourModel {
  readonly script: Script
  /** The last summary that the script wrote; null if no summary was requested. */
  lastSummary(): string | null
}

/**
 * Creates the simulated model of one run. It finds its position in the conversation, or after a compaction remembers it, so that a repeated
 * request gets the same reply. `refusal`: the message with which the provider refuses one request, late in the job; null for none.
 */
export function createTourModel({ refusal }: { readonly refusal: string | null }): TourModel {
  let done = 0
  let isRefused = refusal === null
  let lastSummary: string | null = null
  const summarize = createSummarizer()
  const reply = withSummaries(
    (): Reply => {
      if (STEPS[done]?.say !== REFUSED_STEP || isRefused) return toReply(Math.min(done, STEPS.length - 1))
      isRefused = true
      return { blocks: [], fault: { type: 'status', status: 400, message: String(refusal) } }
    },
    async (request, context) => {
      const summary = await summarize(request, context)
      lastSummary = summary.blocks.map((block) => ('text' in block ? String(block.text) : '')).join('')
      return summary
    },
  )
  return {
    script(request, context) {
      done = Math.max(done, countSteps(request.messages))
      return reply(request, context)
    },
    lastSummary: () => lastSummary,
  }
}

function toReply(index: number): Reply {
  const { say, calls } = STEPS[index] as JobStep
  const blocks = calls.map(({ name, input }, number) => ({
    type: 'tool_use' as const,
    id: `toolu_tour_${index}_${number}`,
    name,
    input: input as never,
  }))
  return { blocks: [{ type: 'text', text: say }, ...blocks] }
}

/** Returns how many steps of the job are done, by the last one whose text is in the conversation. */
function countSteps(messages: Parameters<Script>[0]['messages']): number {
  const said = new Set(
    messages
      .filter(({ role }) => role === 'assistant')
      .flatMap(({ content }) => (typeof content === 'string' ? [content] : content.map(({ text }) => text))),
  )
  return STEPS.findLastIndex(({ say }) => said.has(say)) + 1
}
