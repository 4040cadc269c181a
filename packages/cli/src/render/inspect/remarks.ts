/** How good the estimates were, what side agents did, and, last, what a person should know about the log. */
import type { DamagedPlace, SessionReport } from 'tidemark'
import { cost, count, percent, tokens, whole } from '../figures.ts'
import { heading } from '../layout.ts'
import type { Screen } from '../screen.ts'
import { cutEnd, left, right } from '../width.ts'
import { wrap } from '../wrap.ts'
import { shown, shownPath } from './shown.ts'

const REASONS: Readonly<Record<string, string>> = {
  boundary: 'after a compaction',
  clearing: 'after a clearing',
  restart: 'after a restart',
  rewind: 'after a rewind',
  'model-change': 'after a change of model',
  'negative-growth': 'where the context shrank by itself',
}

export function estimator({ estimator: found }: SessionReport, screen: Screen): readonly string[] {
  const { turns, medianAbsError, bias, excluded } = found
  if (turns === 0 || medianAbsError === null || bias === null) return []
  const direction = Math.abs(bias) < 0.0005 ? 'off' : bias > 0 ? 'over' : 'under'
  const apart = excluded.map(({ reason, count: number }) => `${whole(number)} ${REASONS[reason] ?? reason}`)
  const text = `${count(turns, 'turn')} predicted: off by ${tokens(medianAbsError)} tokens (median), ${percent(Math.abs(bias))} ${direction} in all`
  return [
    screen.colors.bold('Estimator'),
    ...wrap(text, screen.columns, '  '),
    ...(apart.length === 0
      ? []
      : wrap(`left out: ${apart.join(', ')}`, screen.columns, '  ').map(screen.colors.dim)),
  ]
}

const MOST_AGENTS = 5

export function agents(report: SessionReport, screen: Screen): readonly string[] {
  const { agents: all } = report
  if (all.length === 0) return []
  const calls = all.reduce((sum, agent) => sum + agent.apiCalls, 0)
  const dearest = all
    .toSorted((one, other) => (other.costUsd ?? 0) - (one.costUsd ?? 0))
    .slice(0, MOST_AGENTS)
  const rows = dearest.map((agent) => {
    const room = Math.min(40, screen.columns - 26)
    const name = left(cutEnd(shown(agent.id), room, screen.symbols.more), room)
    return `  ${name}${right(count(agent.apiCalls, 'call'), 12)}${right(cost(agent.costUsd, 0), 10)}`
  })
  return [heading('Side agents', `${whole(all.length)}, with ${count(calls, 'call')}`, screen), ...rows]
}

const MOST_KINDS = 8

export function warnings(report: SessionReport, screen: Screen): readonly string[] {
  const { symbols, colors } = screen
  const kinds = [...Map.groupBy(report.damaged, reasonOf).values()]
  const more = kinds.length - MOST_KINDS
  const lines = [
    ...kinds.slice(0, MOST_KINDS).map(damageLine),
    ...(more > 0 ? [`and ${count(more, 'kind')} of damage more (--json lists them all)`] : []),
    ...uncounted(report),
  ]
  return lines.flatMap((line) => wrap(line, screen.columns, `${symbols.warning} `).map(colors.yellow))
}

/** What makes two places alike: the reason, but for the ids and numbers in it. */
function reasonOf({ kind, why }: DamagedPlace): string {
  const reason = why
    .replace(/^lines \d+ to \d+: /, '')
    .replace(/(?<=\b(?:uuid|record|parent|of) )\S+(?= )|^\S+(?= (?:has|is|was) )/g, '')
    .replace(/\S*\d\S*/g, '')
  return `${kind} ${reason}`
}

/** The first of its kind speaks for the others. */
function damageLine(places: readonly DamagedPlace[]): string {
  const [first] = places
  if (first === undefined) return ''
  const file = first.file === undefined ? '' : `${shownPath(first.file)}, `
  // Neighbouring lines with one trouble name themselves.
  const isNamed = first.line === 0 || first.why.startsWith('lines ')
  const place = isNamed ? file : `${file}line ${whole(first.line)}: `
  const others = places.length - 1
  return `${place}${shown(first.why)}${others > 0 ? ` (and ${count(others, 'place')} more like it)` : ''}`
}

function uncounted({ copiedCalls, callsWithoutUsage, format }: SessionReport): readonly string[] {
  return [
    ...(copiedCalls > 0
      ? [`${count(copiedCalls, 'call')} of it stood in a session given before and count there`]
      : []),
    ...(callsWithoutUsage > 0
      ? [
          `${count(callsWithoutUsage, 'answer')} without usage in the log: ${unknownCost(format, callsWithoutUsage)}`,
        ]
      : []),
  ]
}

/** Codex counts its calls itself, so one that it did not count is no part of the total. */
function unknownCost(format: SessionReport['format'], answers: number): string {
  if (format !== 'codex') return 'tokens and cost are not known'
  const [are, they] = answers === 1 ? ['it is', 'it'] : ['they are', 'they']
  return `${are} in none of the figures, and what ${they} cost is not known`
}
