/** A host whose sessions are rewritten: a model that reads one file a prompt, state around the work, a summary that is given. */
import {
  agentsCarrier,
  type BackgroundAgent,
  type Block,
  blocksOf,
  type Carrier,
  type Clock,
  collect,
  createEstimator,
  createPolicy,
  createProfile,
  type Deadlines,
  type DeepPartial,
  fixedRule,
  type Ids,
  isToolResult,
  isToolUse,
  type Journal,
  type Model,
  type Payload,
  type Policy,
  placeSections,
  planCarrier,
  type ReplyEvent,
  type Room,
  registerRules,
  scalePolicy,
  section,
  standingCarrier,
  type Todo,
  type TurnHost,
  todosCarrier,
  type WriteSummary,
} from '@tidemark/core'
import { createFakeClock } from '@tidemark/core/testing'
import { createDeadlines, systemIds } from 'tidemark'
import { sectionTitles } from '../../packages/core/src/summary/summary-prompt.ts'

export const SESSION = 'work'

/** What has a source of truth outside the conversation. */
export interface WorkState {
  standing: string
  plan: string
  todos: readonly Todo[]
  agents: readonly BackgroundAgent[]
}

export function workState(): WorkState {
  return {
    standing: 'Never push to main.\r\n\tTabs, and a last line without an end ✓',
    plan: '# Plan\n\n1. Read all files.\n2. Write the report.  \n',
    todos: [
      { content: 'read the files', status: 'in_progress' },
      { content: 'write "the report"', status: 'pending' },
    ],
    agents: [{ id: 'agent-7', purpose: 'looks for dead links', status: 'running' }],
  }
}

export interface WorkOptions {
  readonly journal: Journal
  readonly state?: WorkState
  readonly clock?: Clock
  readonly ids?: Ids
  readonly deadlines?: Deadlines
  readonly policy?: DeepPartial<Policy>
  readonly writeSummary?: WriteSummary
  readonly hooks?: Room['hooks']
  readonly cleanups?: Room['cleanups']
  readonly carriers?: (state: WorkState) => readonly Carrier[]
  readonly model?: (plain: Model) => Model
  /** The text of a section of the prompt that is computed. */
  readonly rules?: () => string | Promise<string>
}

export type WorkHost = TurnHost & { readonly room: Room }

export function workHost(options: WorkOptions): WorkHost {
  const { journal, clock = createFakeClock(), ids = systemIds, state = workState() } = options
  const policy = createPolicy({ clear: { idle: { keep: 1, minimumFreedTokens: 500 } }, ...options.policy })
  const plain = workingModel(ids)
  return {
    journal,
    model: options.model?.(plain) ?? plain,
    clock,
    ids,
    policy,
    profile: createProfile({ window: WINDOW.window, maxOutput: WINDOW.maxOutput }),
    source: 'sdk',
    isInteractive: false,
    pricesOf: () => null,
    sections: placeSections({ sections: [section('rules', options.rules ?? (() => 'Work with care.'))] }),
    offered: () => ({ tools: TOOLS, model: 'model-a', parameters: { max_tokens: 1_000 } }),
    runTool: ({ input }) => ({ content: fileText(String((input as { file_path?: unknown }).file_path)) }),
    room: roomOf(options, { clock, policy, state }),
  }
}

export const WINDOW = { window: 200_000, maxOutput: 8_000 }
export const TOOLS = [{ name: 'Read', input_schema: { type: 'object' } }]

interface RoomQuestion {
  readonly clock: Clock
  readonly policy: Policy
  readonly state: WorkState
}

function roomOf(options: WorkOptions, { clock, policy, state }: RoomQuestion): Room {
  const estimator = createEstimator(fixedRule(policy.estimate))
  const scaled = scalePolicy(policy, WINDOW)
  return {
    estimator,
    scaled,
    rules: registerRules({ estimator, policy: policy.clear, largeInput: scaled.budgets.clear.largeInput }),
    deadlines: options.deadlines ?? createDeadlines(clock),
    retrieval: { historyTool: null, transcript: null },
    carriers: (options.carriers ?? carriersOf)(state),
    writeSummary: options.writeSummary ?? givenSummary,
    ...(options.hooks === undefined ? {} : { hooks: options.hooks }),
    ...(options.cleanups === undefined ? {} : { cleanups: options.cleanups }),
  }
}

export function carriersOf(state: WorkState): readonly Carrier[] {
  return [
    standingCarrier(() => [{ path: '/STANDING.md', text: state.standing }]),
    todosCarrier({ read: () => state.todos, tellsChanges: true }),
    planCarrier(() => ({ path: '/plan.md', text: state.plan })),
    agentsCarrier(() => state.agents),
  ]
}

/** Says what it was shown, so that summaries of different spans differ. */
export const givenSummary: WriteSummary = async ({ span }) =>
  `Summary:\n1. Primary Request and Intent: files are read one by one; ${span.summarised.length} records so far.`

/** About 1,300 tokens, different for every file. */
export function fileText(path: string): string {
  return `// ${path}\n${`const line = "${path}"\n`.repeat(150)}`
}

/** A prompt is answered with a call, its result with a word, and who wants a summary gets one. */
export function workingModel(ids: Ids): Model {
  return {
    async *stream({ payload }) {
      const last = payload.messages.at(-1)
      const blocks = last === undefined ? [] : blocksOf(last.content)
      const id = ids.next('message')
      if (blocks.some(({ text }) => String(text).includes('Call no tool')))
        yield* replyEvents(payload, id, [SUMMARY])
      else if (blocks.some(isToolResult)) yield* replyEvents(payload, id, [saying(`Read; so says ${id}.`)])
      else yield* replyEvents(payload, id, [saying('I look.'), reading(ids.next('call'))])
    },
  }
}

function saying(text: string): Block {
  return { type: 'text', text }
}

function reading(call: string): Block {
  return { type: 'tool_use', id: `toolu_${call}`, name: 'Read', input: { file_path: `/src/${call}.ts` } }
}

const SECTIONS = sectionTitles('full').map(
  (title, index) => `${index + 1}. ${title}: files are read one by one.`,
)
const SUMMARY = saying(`<analysis>short</analysis>\n<summary>\n${SECTIONS.join('\n')}\n</summary>`)

function* replyEvents(payload: Payload, id: string, blocks: readonly Block[]): Generator<ReplyEvent> {
  const usage = { input_tokens: Math.ceil(JSON.stringify(payload).length / 3), output_tokens: 5 }
  const { model } = payload
  const events: ReplyEvent[] = [
    { type: 'reply-started', message: { id, role: 'assistant', model, content: [], usage } },
  ]
  for (const [index, block] of blocks.entries())
    events.push({ type: 'block-started', index, block }, { type: 'block-ended', index, block })
  const stop_reason = blocks.some(isToolUse) ? 'tool_use' : 'end_turn'
  events.push({ type: 'reply-updated', fields: { stop_reason } })
  const reply = collect(events)
  yield* events
  if (reply !== null) yield { type: 'reply-ended', reply }
}
