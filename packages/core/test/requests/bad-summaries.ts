import {
  assistant,
  type BadRequest,
  call,
  profileWith,
  request,
  result,
  serverCall,
  summary,
  text,
  user,
} from './make.ts'

const plain = (more: Readonly<Record<string, unknown>>): unknown => request([user('a')], more)
const first = 'context_management.edits.0'
const summarize = { compaction: { type: 'summarize' } } as const

export const badSummaries: readonly BadRequest[] = [
  {
    why: 'summaries where there are none',
    payload: request([user([summary(), text()])], summarize),
    profile: profileWith({ compaction: { blocks: false, onDemand: false } }),
    findings: [
      ['compaction-refused', 'messages.0.content.0'],
      ['compaction-refused', 'compaction'],
    ],
  },
  {
    why: 'a summary of another kind',
    payload: plain({ compaction: { type: 'shorten' } }),
    findings: [['compaction-request', 'compaction']],
  },
  {
    why: 'instructions in a list',
    payload: plain({ compaction: { type: 'summarize', instructions: [] } }),
    findings: [['compaction-request', 'compaction.instructions']],
  },
  {
    why: 'too many instructions',
    payload: plain({ compaction: { type: 'summarize', instructions: 'x'.repeat(16_385) } }),
    findings: [['compaction-request', 'compaction.instructions']],
  },
  {
    why: 'a summary with all that excludes it',
    payload: plain({
      ...summarize,
      context_management: { edits: [] },
      stop_sequences: ['a'],
      output_config: { format: {}, task_budget: { remaining: 5 } },
      thread: { type: 'create' },
      tool_choice: { type: 'any' },
    }),
    findings: [
      ['compaction-combination', 'context_management'],
      ['compaction-combination', 'stop_sequences'],
      ['compaction-combination', 'output_config.format'],
      ['compaction-combination', 'output_config.task_budget.remaining'],
      ['compaction-combination', 'thread'],
      ['compaction-combination', 'tool_choice'],
    ],
  },
  {
    why: 'a signed summary beside a budget left over and a further summary',
    payload: request([user([summary(), text()])], {
      output_config: { task_budget: { remaining: 5 } },
      context_management: { edits: [{ type: 'compact' }] },
    }),
    findings: [
      ['compaction-combination', 'output_config.task_budget.remaining'],
      ['compaction-combination', first],
    ],
  },
  {
    why: 'summaries without their beta',
    payload: request([user([summary(), text()])], { ...summarize, betas: [] }),
    findings: [
      ['beta-missing', 'messages.0.content.0'],
      ['beta-missing', 'compaction'],
    ],
  },
  {
    why: 'a summary while a search is under way',
    payload: request([user('a'), assistant([serverCall('s'), call('t')]), user([result('t')])], summarize),
    findings: [['compaction-incomplete-turn', 'messages.1.content.0']],
  },
  {
    why: 'a summary with a field that it did not come with, though there is nothing in it',
    payload: request([assistant([summary({ citations: null })]), user('a')]),
    findings: [['block-field', 'messages.0.content.0.citations']],
  },
  {
    why: 'a summary before the results',
    payload: request([user('a'), assistant([call('t')])], summarize),
    findings: [['tool-result-missing', 'messages.1']],
  },
  {
    why: 'a summary of nothing',
    payload: request([assistant([])], summarize),
    profile: profileWith({ roles: { first: 'any' } }),
    findings: [['compaction-nothing', 'messages']],
  },
]
