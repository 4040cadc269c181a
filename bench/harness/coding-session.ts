/**
 * A coding session of about so many tokens through the face of the library: files read and edited, commands that succeed
 * and fail, a todo list, prompts of the user.
 */
import { setImmediate } from 'node:timers/promises'
import { anthropic, assistant, createTidemark, type Session, type Tidemark, toolResult, user } from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'

const MODEL_ID = 'claude-sonnet-5-5'
const SESSION = 'coding'
const MODULES = 120
const CHARACTERS_PER_TOKEN = 3

/** `model`: a scripted model writes the summary; `local`: it is written from the log; `notes`: the notes are the summary. */
export type BenchSummarizer = 'local' | 'model' | 'notes'

/** A session in memory that was closed at so many tokens and opened again by another process. */
export async function openCodingSession(
  tokens: number,
  { summarizer, window = 2 * tokens + 100_000 }: { summarizer: BenchSummarizer; window?: number },
): Promise<Session> {
  const written = stores.get(tokens) ?? writeCodingSession(tokens)
  stores.set(tokens, written)
  const copy: MemoryStore = new Map()
  for (const [id, { lines }] of await written) copy.set(id, { lines: [...lines], holder: null })
  return createCodingTidemark(copy, { window, summarizer, tokens }).open(SESSION)
}

const stores = new Map<number, Promise<MemoryStore>>()

interface CodingTidemarkOptions {
  readonly window: number
  readonly summarizer: BenchSummarizer
  readonly tokens: number
}

function createCodingTidemark(
  store: MemoryStore,
  { window, summarizer, tokens }: CodingTidemarkOptions,
): Tidemark {
  // Only an automatic compaction uses the notes: its threshold is a little below what the session has.
  const percentOfEffective = summarizer === 'notes' ? Math.floor((90 * tokens) / window) : null
  // No answer of a network comes in the same turn of the event loop.
  const fetch = async (): Promise<Response> => {
    await setImmediate()
    return createSummaryReply()
  }
  return createTidemark({
    model: anthropic(MODEL_ID, { apiKey: 'any', window, fetch }),
    system: 'You help with code.',
    env: {},
    journal: createMemoryJournal(store),
    policy: {
      compact: { chain: { local: summarizer === 'local' ? 'only' : 'last' } },
      switches: { microcompactEnabled: summarizer !== 'notes' },
      ladder: { autoCompact: { percentOfEffective } },
    },
  })
}

async function writeCodingSession(tokens: number): Promise<MemoryStore> {
  const store: MemoryStore = new Map()
  const session = await createCodingTidemark(store, {
    window: 4 * tokens + 100_000,
    summarizer: 'local',
    tokens,
  }).open(SESSION)
  const messages: object[] = []
  for (let step = 0, characters = 0; characters < tokens * CHARACTERS_PER_TOKEN; step += 1) {
    const added = createStep(step, Math.round(characters / CHARACTERS_PER_TOKEN))
    characters += JSON.stringify(added).length
    messages.push(...added)
  }
  await session.append(...messages)
  await session.close()
  return store
}

function createStep(step: number, tokens: number): readonly object[] {
  const path = `/project/src/module-${step % MODULES}/part-${(step * 7) % MODULES}.ts`
  const words = `I look at ${path} for the error in step ${step}. The function handle${step} calls parseRow with a null value; that must not be.`
  const { name, input, result } = createCall(step, path)
  const response = assistant({
    id: `msg_${step}`,
    role: 'assistant',
    model: MODEL_ID,
    stop_reason: 'tool_use',
    content: [
      ...(step % 3 === 0 ? [{ type: 'text', text: words }] : []),
      { type: 'tool_use', id: `toolu_${step}`, name, input },
    ],
    usage: { input_tokens: 5, output_tokens: 120, cache_read_input_tokens: tokens + 1_000 },
  })
  return [
    ...(step % 24 === 0 ? [user(createPrompt(step))] : []),
    response,
    toolResult(`toolu_${step}`, result),
  ]
}

interface StepCall {
  readonly name: string
  readonly input: object
  readonly result: string
}

function createCall(step: number, path: string): StepCall {
  const kind = step % 6
  if (kind === 2) {
    const input = {
      file_path: path,
      old_string: `  return rows.map((row) => toLine(row, ${step}))`,
      new_string: `  const lines = rows.map((row) => toLine(row, ${step}))\n  if (lines.length === 0) throw new EmptyTableError('no rows ${step}')\n  return lines`,
    }
    return { name: 'Edit', input, result: `The file ${path} has been updated.` }
  }
  if (kind === 4) {
    const input = { command: `npm test -- src/module-${step % MODULES}` }
    return { name: 'Bash', input, result: createTestOutput(step) }
  }
  if (kind === 5) {
    const todos = [1, 2, 3, 4].map((part) => ({
      content: `Part ${part} of ${step}: check the limits`,
      status: part === 1 ? 'completed' : part === 2 ? 'in_progress' : 'pending',
      activeForm: 'Checking the limits',
    }))
    return { name: 'TodoWrite', input: { todos }, result: 'Todos have been modified.' }
  }
  return { name: 'Read', input: { file_path: path }, result: createFile(step) }
}

function createPrompt(step: number): string {
  const reason = 'It came up in the review, and the customer waits for it. '.repeat(step % 5)
  return `Now make step ${step} work: the export in src/module-${step % MODULES} must write dates as ISO text, never local time. Don't touch the tests of module ${step % 7}. ${reason}`
}

function createFile(step: number): string {
  const lines = Array.from({ length: 110 }, (_, line) => {
    const name = (step * 31 + line) % 997
    const start = `${String(line + 1).padStart(6)}\t`
    if (line % 10 === 0)
      return `${start}export function handle${name}(rows: readonly Row[], options: Options${name % 9} = {}): Result {`
    if (line % 10 === 9) return `${start}}`
    return `${start}  const value${name} = options.limit${name % 5} ?? parseRow(rows[${line}], 'column-${name}') // see issue ${name}`
  })
  return lines.join('\n')
}

function createTestOutput(step: number): string {
  const passed = Array.from(
    { length: 60 },
    (_, index) => ` ✓ src/module-${index}/part-${step}.test.ts (${index + 3} tests) ${index * 2}ms`,
  )
  if (step % 5 !== 0) return [...passed, 'Tests  212 passed (212)'].join('\n')
  return [
    ...passed,
    ` FAIL  src/module-${step % MODULES}/part.test.ts > writes dates`,
    `AssertionError: expected '2026-01-0${step % 9}' to equal '01/0${step % 9}/2026'`,
    'Tests  1 failed | 212 passed (213)',
    'Exit code 1',
  ].join('\n')
}

const SUMMARY = [
  '1. Primary Request and Intent:\nMake the export write dates as ISO text.',
  '2. Key Technical Concepts:\n- dates',
  '3. Files and Code Sections:\n- /project/src/module-1/part-7.ts',
  '4. Errors and fixes:\n- none',
  '5. Problem Solving:\nThe export.',
  '6. All user messages:\n- Now make it work.',
  '7. Pending Tasks:\n- check the limits',
  '8. Current Work:\nThe export of dates, in module 1.',
  '9. Optional Next Step:\nRun the tests.',
].join('\n\n')

function createSummaryReply(): Response {
  const usage = { input_tokens: 5, output_tokens: 300, cache_read_input_tokens: 9_000 }
  const message = { id: `msg_${crypto.randomUUID()}`, type: 'message', role: 'assistant', model: MODEL_ID }
  const text = `<summary>\n${SUMMARY}\n</summary>`
  const events = [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 300 } },
    { type: 'message_stop' },
  ]
  const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}
