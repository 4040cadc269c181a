/** The provider's own summaries: the request for one, and where its block may stand afterwards. */
import { isCompactionBlock } from '../../conversation/block.ts'
import { isObject } from '../../conversation/json.ts'
import type { Profile } from '../../policy/profile.ts'
import type { CallState } from './calls.ts'
import { editsOf } from './edits.ts'
import { type Fields, fieldAt, isAbsent, type Report } from './finding.ts'
import type { ReadBlock, ReadMessage } from './read.ts'
import { isForced } from './tools.ts'

/** Where the first signed block is. A signed block replaces what it summarises; any other comes after it. */
export interface CompactionState {
  readonly signed: string | null
}

export const startCompaction: CompactionState = { signed: null }

export interface SummaryRules {
  readonly profile: Profile
  readonly report: Report
}

export function stepCompaction(
  state: CompactionState,
  message: ReadMessage,
  rules: SummaryRules,
): CompactionState {
  return message.blocks
    .filter(({ block }) => isCompactionBlock(block))
    .reduce((before, item) => afterBlock(before, item, rules), state)
}

function afterBlock(
  state: CompactionState,
  { block, path }: ReadBlock,
  rules: SummaryRules,
): CompactionState {
  const { profile, report } = rules
  if (!profile.compaction.blocks) report('compaction-refused', path, 'Expected no compaction block.')
  if (typeof block.signature !== 'string') return state
  if (state.signed !== null) {
    report('compaction-repeated', path, 'Expected one signed compaction block, the newest.')
    return state
  }
  if (path !== 'messages.0.content.0') {
    report(
      'compaction-misplaced',
      path,
      'Expected the compaction block first, in place of what it summarises.',
    )
  }
  return { signed: path }
}

export interface SummaryEnd {
  readonly request: Fields
  readonly betas: ReadonlySet<unknown>
  /** Calls of the provider's that are under way. */
  readonly waiting: CallState['waiting']
}

export function finishCompaction(state: CompactionState, end: SummaryEnd, rules: SummaryRules): void {
  if (state.signed !== null) checkBesideBlock(state.signed, end, rules)
  if (isAbsent(end.request.compaction)) return
  checkRequest(end, rules)
  for (const { path } of end.waiting.values()) {
    rules.report(
      'compaction-incomplete-turn',
      path,
      'Expected every call to have its result before a summary.',
    )
  }
}

function checkBesideBlock(
  path: string,
  { request, betas }: SummaryEnd,
  { profile, report }: SummaryRules,
): void {
  const { compaction, contextEdits } = profile
  checkBeta(path, betas, { profile, report })
  reportPresent(compaction.notWithBlock, request, { report, beside: 'a signed compaction block' })
  for (const [edit, place] of editsOf(request)) {
    if (contextEdits.compact === null || edit.type !== contextEdits.compact) continue
    report('compaction-combination', place, 'Expected no further summary beside a signed compaction block.')
  }
}

function checkBeta(path: string, betas: ReadonlySet<unknown>, { profile, report }: SummaryRules): void {
  const { beta } = profile.compaction
  if (beta !== null && !betas.has(beta)) report('beta-missing', path, `Expected the beta ${beta}.`)
}

function checkRequest({ request, betas }: SummaryEnd, { profile, report }: SummaryRules): void {
  const { onDemand, notWithRequest } = profile.compaction
  if (!onDemand) {
    report('compaction-refused', 'compaction', 'Expected no request for a summary.')
    return
  }
  checkBeta('compaction', betas, { profile, report })
  checkForm(request.compaction, { profile, report })
  reportPresent(notWithRequest, request, { report, beside: 'a request for a summary' })
  if (isForced(request)) {
    report('compaction-combination', 'tool_choice', 'Expected no forced call beside a request for a summary.')
  }
}

function checkForm(compaction: unknown, { profile, report }: SummaryRules): void {
  if (!isObject(compaction) || compaction.type !== 'summarize') {
    report('compaction-request', 'compaction', "Expected an object of type 'summarize'.")
    return
  }
  const { instructions } = compaction
  const most = profile.compaction.maxInstructionCharacters
  const fits =
    typeof instructions === 'string' && (instructions.length <= most || [...instructions].length <= most)
  if (!isAbsent(instructions) && !fits) {
    report(
      'compaction-request',
      'compaction.instructions',
      `Expected a string of at most ${most} characters.`,
    )
  }
}

interface Excluding {
  readonly report: Report
  readonly beside: string
}

function reportPresent(paths: readonly string[], request: Fields, { report, beside }: Excluding): void {
  for (const path of paths) {
    if (!isAbsent(fieldAt(request, path))) {
      report('compaction-combination', path, `Expected no ${path} beside ${beside}.`)
    }
  }
}
