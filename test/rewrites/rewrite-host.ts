/** A host for tests of rewrites: a model that reads one file a prompt, state outside the log, a fixed summary. */

import type { CompactionServices, HostSummaryWriter, TurnHost } from '@tidemark/core/engine/host'
import type { Clock, Deadlines, IdGenerator, Journal, Model } from '@tidemark/core/engine/ports'
import { type Block, isToolResult, toBlocks } from '@tidemark/core/log/block'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import type { Policy } from '@tidemark/core/policy/policy'
import type { DeepPartial } from '@tidemark/core/policy/policy-fields'
import { orderPromptSections, section } from '@tidemark/core/request/system-prompt'
import {
  agentsSource,
  type BackgroundAgent,
  instructionsSource,
  planSource,
  type Todo,
  todosSource,
} from '@tidemark/core/sources/builtin-sources'
import type { ContextSource } from '@tidemark/core/sources/context-source'
import {
  createFakeClock,
  createFakeModel,
  createTestCompaction,
  createTestHost,
} from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { createDeadlines, systemIds } from 'tidemark/internal'
import { listSectionTitles } from '../../packages/core/src/summary/summary-prompt.ts'

export const SESSION = 'work'

/** State whose source of truth is outside the log. */
export interface OutsideState {
  standing: string
  plan: string
  todos: readonly Todo[]
  agents: readonly BackgroundAgent[]
}

export function createOutsideState(): OutsideState {
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

export interface RewriteHostOptions {
  readonly journal: Journal
  readonly state?: OutsideState
  readonly clock?: Clock
  readonly ids?: IdGenerator
  readonly deadlines?: Deadlines
  readonly policy?: DeepPartial<Policy>
  readonly writeSummary?: HostSummaryWriter
  readonly hooks?: CompactionServices['hooks']
  readonly cleanups?: CompactionServices['cleanups']
  readonly carriers?: (state: OutsideState) => readonly ContextSource[]
  readonly model?: (plain: Model) => Model
  /** Text of a computed section of the system prompt. */
  readonly rules?: () => string | Promise<string>
}

export function createRewriteHost(options: RewriteHostOptions): TurnHost {
  const { journal, clock = createFakeClock(), ids = systemIds, state = createOutsideState() } = options
  const clear = { keptFiles: 0, idle: { keep: 1, minimumFreedTokens: 500 } }
  const policy = createPolicy({ clear, ...options.policy })
  const plain = createReadingModel(ids)
  const room = createTestCompaction(
    { policy, ...WINDOW },
    {
      deadlines: options.deadlines ?? createDeadlines(clock),
      retrieval: { historyTool: null, transcript: null },
      sources: (options.carriers ?? createCarriers)(state),
      writeSummary: options.writeSummary ?? writeFixedSummary,
      ...(options.hooks === undefined ? {} : { hooks: options.hooks }),
      ...(options.cleanups === undefined ? {} : { cleanups: options.cleanups }),
    },
  )
  return createTestHost({
    journal,
    compaction: room,
    model: options.model?.(plain) ?? plain,
    clock,
    ids,
    policy,
    profile: defineMessagesProfile(WINDOW),
    sections: orderPromptSections({
      sections: [section('rules', options.rules ?? (() => 'Work with care.'))],
    }),
    readOfferedPrefix: () => ({ tools: TOOLS, model: 'model-a', parameters: { max_tokens: 1_000 } }),
    runTool: ({ input }) => ({ content: fileText(String((input as { file_path?: unknown }).file_path)) }),
  })
}

export const WINDOW = { window: 200_000, maxOutput: 8_000 }
const TOOLS = [{ name: 'Read', input_schema: { type: 'object' } }]

export function createCarriers(state: OutsideState): readonly ContextSource[] {
  return [
    instructionsSource(() => [{ path: '/STANDING.md', text: state.standing }]),
    todosSource({ read: () => state.todos, tellsChanges: true }),
    planSource(() => ({ path: '/plan.md', text: state.plan })),
    agentsSource(() => state.agents),
  ]
}

/** Names the number of records, so that summaries of different spans differ. */
export const writeFixedSummary: HostSummaryWriter = async ({ span }) =>
  `Summary:\n1. Primary Request and Intent: files are read one by one; ${span.summarised.length} records so far.`

/** About 1,300 tokens, different for every file. */
export function fileText(path: string): string {
  return `// ${path}\n${`const line = "${path}"\n`.repeat(150)}`
}

/** Answers a prompt with a call, its result with text, and a request for a summary with a summary. */
export function createReadingModel(ids: IdGenerator): Model {
  return createFakeModel(({ payload }) => {
    const last = payload.messages.at(-1)
    const blocks = last === undefined ? [] : toBlocks(last.content)
    const id = ids.next('message')
    const usage = { input: Math.ceil(JSON.stringify(payload).length / 3), output: 5 }
    if (blocks.some(({ text }) => String(text).includes('Call no tool')))
      return { id, usage, blocks: [SUMMARY] }
    if (blocks.some(isToolResult)) return { id, usage, blocks: [textBlock(`Read; so says ${id}.`)] }
    const calls = [textBlock('I look.'), readCall(ids.next('call'))]
    return { id, usage, blocks: calls, stop: 'tool_use' }
  })
}

function textBlock(text: string): Block {
  return { type: 'text', text }
}

function readCall(call: string): Block {
  return { type: 'tool_use', id: `toolu_${call}`, name: 'Read', input: { file_path: `/src/${call}.ts` } }
}

const SECTIONS = listSectionTitles('full').map(
  (title, index) => `${index + 1}. ${title}: files are read one by one.`,
)
const SUMMARY = textBlock(`<analysis>short</analysis>\n<summary>\n${SECTIONS.join('\n')}\n</summary>`)
