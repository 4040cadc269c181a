/** The spending of the listed sessions by month, day, project, model or program, with one bar each. Cache breaks are red. */
import {
  formatCost,
  formatCount,
  formatDollars,
  formatWholePercent,
} from '@tidemark/terminal/render/format-numbers'
import { useState } from 'preact/hooks'
import type { ListedSession } from 'tidemark/report'
import { PROGRAM_NAMES } from '../chart/programs.ts'
import {
  GROUPINGS,
  type Grouping,
  groupSpending,
  type SpendingGroup,
  UNKNOWN_GROUP,
} from '../chart/spending-groups.ts'
import { formatDay, formatModelName, formatMonth, formatSessionOrigin } from './display-names.ts'

const FIRST_GROUPS = 7

interface SpendingGroupsProps {
  readonly sessions: readonly ListedSession[]
  /** Called with the name of a group that the user chose, as the filter of the list takes it. */
  readonly onChoose: (name: string) => void
}

export function SpendingGroups({ sessions, onChoose }: SpendingGroupsProps) {
  const [grouping, setGrouping] = useState<Grouping>('day')
  const [isWhole, setWhole] = useState(false)
  const groups = groupSpending(sessions, grouping, {
    nameProgram: ({ format }) => PROGRAM_NAMES[format],
    nameProject: formatSessionOrigin,
  })
  const most = Math.max(...groups.map(({ usd }) => usd), 0.000_001)
  const shown = isWhole ? groups : groups.slice(0, FIRST_GROUPS)
  return (
    <section class="card groups" aria-label="Cost by group">
      <fieldset class="switch">
        <legend>Cost by</legend>
        {GROUPINGS.map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={each === grouping}
            onClick={() => {
              setGrouping(each)
              setWhole(false)
            }}
          >
            {each}
          </button>
        ))}
      </fieldset>
      <ul class="bars">
        {shown.map((group) => (
          <GroupBar key={group.name} group={group} grouping={grouping} most={most} onChoose={onChoose} />
        ))}
      </ul>
      {shown.length === groups.length ? null : (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {groups.length}
        </button>
      )}
    </section>
  )
}

const NAME_FORMATS: Readonly<Partial<Record<Grouping, (name: string) => string>>> = {
  day: formatDay,
  month: formatMonth,
  model: formatModelName,
}

interface GroupBarProps {
  readonly group: SpendingGroup
  readonly grouping: Grouping
  readonly most: number
  readonly onChoose: (name: string) => void
}

function GroupBar({ group, grouping, most, onChoose }: GroupBarProps) {
  const { name, usd, lostUsd, calls, isPart } = group
  const title = NAME_FORMATS[grouping]?.(name) ?? name
  const lost =
    lostUsd < 0.005
      ? ''
      : `, ${formatDollars(lostUsd)} lost to breaks (${formatWholePercent(lostUsd / Math.max(usd, lostUsd))})`
  return (
    <li>
      <span class="group-name">
        {name === UNKNOWN_GROUP ? (
          title
        ) : (
          <button type="button" class="link" title="Show only these sessions" onClick={() => onChoose(name)}>
            {title}
          </button>
        )}
      </span>
      <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class="part-carried" width={(100 * usd) / most} height="8" />
        <rect class="part-breaks" width={(100 * lostUsd) / most} height="8" />
      </svg>
      <b class="number">{formatCost(isPart ? null : usd, usd)}</b>
      <small class="number">
        {formatCount(calls, 'call')}
        {lost}
      </small>
    </li>
  )
}
