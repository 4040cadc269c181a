/** What a compaction takes out, keeps and brings back, what it costs, and when that has paid. */
import type { CompactionPreview, Portion } from 'tidemark'
import { count, dollars, limit, tokens, whole } from '../figures.ts'
import { shown, shownPath } from '../inspect/shown.ts'
import { heading } from '../layout.ts'
import type { Screen } from '../screen.ts'
import { left, right } from '../width.ts'
import { wrap } from '../wrap.ts'

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
