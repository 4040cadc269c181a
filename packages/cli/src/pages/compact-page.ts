/** A compaction on one page: plan, draft, receipt; and what became of it. */

import type { TurnEvent } from '@tidemark/core'
import type { CompactionPreview, CompactionReport, Portion, UndoReport } from 'tidemark'
import { count, dollars, limit, tokens, whole } from '../render/figures.ts'
import { heading, stacked } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import { cutEnd, left, right, shown, shownPath, wrap } from '../render/text.ts'

export function compactPage(
  preview: CompactionPreview,
  screen: Screen,
  { full = false }: { readonly full?: boolean },
): string {
  const blocks = [
    planLines(preview, screen),
    draftLines(preview, screen, full),
    receiptLines(preview, screen),
  ]
  return `${stacked(blocks).join('\n')}\n`
}

/** Where it went. */
export type Went =
  | { readonly kind: 'in-place' | 'copy'; readonly path: string }
  | { readonly kind: 'dry'; readonly why: string | null }

export interface FooterSetting {
  readonly mode: Went
  readonly screen: Screen
}

export function footer({ id }: CompactionReport, { mode, screen }: FooterSetting): string {
  const words =
    mode.kind === 'dry'
      ? dryWords(mode.why)
      : `Written to ${shownPath(mode.path)}. tidemark compact ${shownPath(mode.path)} --undo ${id} takes it back.`
  return `\n${wrap(words, screen.columns).map(screen.colors.bold).join('\n')}\n`
}

export function dryWords(why: string | null): string {
  const because = why === null ? '' : `: ${why}`
  return `Dry run${because}. Nothing was written; -o FILE writes a session that goes on from here.`
}

// What a compaction takes out, keeps and brings back, what it costs, and when that has paid.

export function planLines(preview: CompactionPreview, screen: Screen): readonly string[] {
  const { plan, model, window } = preview
  const size = window === null ? 'window not known' : `window ${limit(window)}`
  return [
    heading(`Compaction of ${shownPath(preview.file)}`, `${shown(model)}, ${size}`, screen),
    sizes(preview, screen),
    ...cutNotes(preview).flatMap((note) => wrap(note, screen.columns, '  ')),
    '',
    heading('Plan', FORMS[plan.form], screen),
    row('goes', plan.goes, { aside: 'replaced by the summary', screen }),
    row('stays', plan.stays, { aside: 'word for word', screen }),
    ...(plan.unanswered.records > 0
      ? [row('not answered', plan.unanswered, { aside: 'stays, last of all', screen })]
      : []),
    row('comes back', plan.comesBack, { aside: comingBack(preview), screen }),
    ...price(preview),
    ...remarks(preview).flatMap((remark) => wrap(remark, screen.columns, '  ').map(screen.colors.dim)),
  ]
}

const FORMS = { full: 'all of it', from: 'from a record on', up_to: 'up to a record' } as const

function sizes({ tokensBefore, tokensAfter, plan }: CompactionPreview, { colors, symbols }: Screen): string {
  const aim = plan.target === null ? '' : colors.dim(`  may have ${limit(plan.target)}`)
  return `  ${tokens(tokensBefore)} ${symbols.arrow} ${colors.bold(`${tokens(tokensAfter)} tokens`)}${aim}`
}

function cutNotes({ movedFrom, at, recordsAfter, plan }: CompactionPreview): readonly string[] {
  const moved =
    movedFrom === null
      ? []
      : [
          `The cut was moved back from ${shown(movedFrom)} to ${shown(at ?? '')}, so that no call is parted from its result.`,
        ]
  const later =
    recordsAfter === 0
      ? []
      : [`As of ${shown(at ?? '')}: ${count(recordsAfter, 'later record is', 'later records are')} left out.`]
  return [...moved, ...later, ...(plan.note === null ? [] : [shown(plan.note)])]
}

const NAME = 14

interface RowSetting {
  readonly aside: string
  readonly screen: Screen
}

function row(name: string, { records, tokens: size }: Portion, { aside, screen }: RowSetting): string {
  const figures = right(whole(records), 8) + right(tokens(size), 9)
  return `  ${left(name, NAME)}${figures}  ${records === 0 ? '' : screen.colors.dim(aside)}`.trimEnd()
}

const MOST_NAMED = 3

function comingBack({ receipt }: CompactionPreview): string {
  const names = receipt.carried.map(({ key }) => shown(key.slice(key.indexOf(':') + 1) || key.slice(0, -1)))
  const more = names.length - MOST_NAMED
  const named = names.slice(0, MOST_NAMED).map((name) => name.split('/').at(-1) ?? name)
  return `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function price({ price: found }: CompactionPreview): readonly string[] {
  if (found === null) return [`  ${left('price', NAME)}not known`]
  const { costUsd, breakEvenCalls } = found
  const pays =
    breakEvenCalls === null
      ? 'does not pay for itself'
      : `pays for itself after ${count(breakEvenCalls, 'call')}`
  return [`  ${left('price', NAME)}${dollars(costUsd)}, ${pays}`]
}

function remarks({ prefixTokens, session, notes, plan }: CompactionPreview): readonly string[] {
  const prefix =
    prefixTokens === 0
      ? []
      : [
          `About ${tokens(prefixTokens)} of each request are not in the log (system prompt, tools) and come on top.`,
        ]
  const history =
    session.records <= plan.goes.records
      ? []
      : [
          `The summary answers for all ${count(session.records, 'record')} of the session (${tokens(session.tokens)}), those compacted before included.`,
        ]
  return [...prefix, ...history, ...notes.map((note) => `Note: ${shown(note)}`)]
}

// The draft of a summary, line by line as the model will read it.

/** Lines that are shown unless all are asked for. */
const MOST_LINES = 40

export function draftLines(preview: CompactionPreview, screen: Screen, isFull: boolean): readonly string[] {
  const { summary } = preview
  const lines = summary.trimEnd().split('\n')
  const more = isFull ? 0 : Math.max(0, lines.length - MOST_LINES)
  const aside = `${by(preview)}, ${whole(summary.length)} characters`
  return [
    heading('Draft', aside, screen),
    ...lines.slice(0, lines.length - more).flatMap((line) => wrap(plain(line), screen.columns, '  ')),
    ...(more > 0
      ? [screen.colors.dim(`  ${screen.symbols.more} ${count(more, 'more line')}: --full shows them`)]
      : []),
    ...(preview.fallbackReason === null
      ? []
      : wrap(fallbackWords(preview), screen.columns, '  ').map(screen.colors.yellow)),
  ]
}

/** Why no model wrote a summary that one was asked for. */
export function fallbackWords({ trace, fallbackReason }: CompactionPreview): string {
  const last = trace.findLast(
    ({ tier, outcome }) => tier === 'summary' && outcome !== 'accepted' && outcome !== 'skipped',
  )
  const why = shown(last?.why ?? fallbackReason ?? '')
  return `No model wrote the summary (${why}): it was made without one.`
}

function by({ summarizer, model }: CompactionPreview): string {
  if (summarizer === 'local') return 'made without a model'
  return summarizer === 'block' ? 'by the provider' : `by ${shown(model)}`
}

/** Unable to drive the terminal, its indent kept. */
function plain(line: string): string {
  const indent = /^[ \t]*/.exec(line)?.[0] ?? ''
  return `${indent.replaceAll('\t', '  ')}${shown(line)}`
}

// The receipt of a compaction: what left, what is no longer said anywhere, and where it can be read.

type Losses = CompactionPreview['receipt']['lost']
type Kind = 'files' | 'userMessages' | 'errors' | 'identifiers'

const KINDS: readonly (readonly [Kind, string, string])[] = [
  ['files', 'file', 'files'],
  ['userMessages', 'message of yours', 'messages of yours'],
  ['errors', 'error', 'errors'],
  ['identifiers', 'name', 'names'],
]

const MOST = 4
const NAME_RECEIPT = 22

export function receiptLines({ receipt }: CompactionPreview, screen: Screen): readonly string[] {
  const { summarised, kept, carried, lost, retrievable } = receipt
  const lines = KINDS.flatMap((kind) => lossLine(kind, lost, screen))
  return [
    heading('Receipt', `${count(retrievable.length, 'record')} can be read again by id`, screen),
    `  summarised ${count(summarised.length, 'record')}, kept ${count(kept.length, 'record')}, brought back ${count(carried.length, 'thing')}`,
    ...(lines.length === 0
      ? ['  nothing that it should hold is lost']
      : ['  no longer said anywhere:', ...lines]),
  ]
}

function lossLine(
  [kind, one, many]: (typeof KINDS)[number],
  lost: Losses,
  screen: Screen,
): readonly string[] {
  const texts = lost[kind]
  const amount = texts.length + (kind === 'identifiers' ? lost.moreIdentifiers : 0)
  if (amount === 0) return []
  const named = texts.slice(0, MOST).map(({ text }) => cutEnd(shown(text), 40, screen.symbols.more))
  const rest = amount > named.length ? ` ${screen.symbols.more}` : ''
  const words = cutEnd(`${named.join(', ')}${rest}`, screen.columns - NAME_RECEIPT - 4, screen.symbols.more)
  return [`    ${left(count(amount, one, many), NAME_RECEIPT)}${screen.colors.dim(words)}`]
}

// What it came to that an act was taken back.

export function undoPage(
  { id, kind, tokensBefore, tokensAfter }: UndoReport,
  { mode, screen }: FooterSetting,
): string {
  const what = kind === 'compact' ? 'compaction' : 'clearing'
  const sizes = `${tokens(tokensBefore)} ${screen.symbols.arrow} ${tokens(tokensAfter)} tokens`
  const where = mode.kind === 'dry' ? dryWords(mode.why) : `Written to ${shownPath(mode.path)}.`
  return `${screen.colors.bold(`The ${what} ${shown(id)} is taken back`)}: ${sizes}.\n${where}\n`
}

// How far a compaction has come, in a few words.

/** Null: nothing new, it only goes on. */
export function progressText(event: TurnEvent | null): string {
  if (event?.type === 'summary-progress')
    return `compacting: ${whole(event.characters)} characters of the summary`
  return event?.type === 'phase' && event.phase !== 'done' ? event.phase : 'compacting'
}
