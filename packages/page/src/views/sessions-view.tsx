/** All sessions in a table, with their cost and losses. The table can be sorted by any column and filtered by a text. */
import {
  formatCost,
  formatCount,
  formatDollars,
  formatTokens,
  formatWholePercent,
} from '@tidemark/terminal/render/format-numbers'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { ListedSession, SessionList } from 'tidemark/report'
import { PROGRAM_NAMES } from '../chart/programs.ts'
import { formatSpendingParts, listSpendingParts } from '../chart/spending-parts.ts'
import type { PageSource } from '../data/page-source.ts'
import { useLoaded, useSessionChanges } from '../data/use-loaded.ts'
import { formatDateTime, formatModelName, formatSessionOrigin, nameSession } from './display-names.ts'
import { Notice } from './notice.tsx'
import { toSessionAddress, useDocumentTitle } from './routes.ts'
import { SpendingBar } from './spending-bar.tsx'
import { SpendingGroups } from './spending-groups.tsx'

/** How the user filters and sorts the list. */
export interface ListChoice {
  readonly filter: string
  readonly sorting: Sorting
}

export const DEFAULT_LIST_CHOICE: ListChoice = { filter: '', sorting: { key: 'started', isDown: true } }

interface ChosenListProps {
  readonly choice: ListChoice
  readonly onChoice: (choice: ListChoice) => void
}

interface SessionsViewProps extends ChosenListProps {
  readonly source: PageSource
}

export function SessionsView({ source, choice, onChoice }: SessionsViewProps) {
  const { value, error, reload } = useLoaded('list', source.loadList)
  useSessionChanges(source, null, reload)
  useDocumentTitle('Sessions')
  useEffect(() => {
    // With a single session, the page goes to it directly. The history entry is replaced, so that going back leaves the page.
    const [only] = value?.sessions ?? []
    if (source.team === null && value?.sessions.length === 1 && value.pending === 0 && only !== undefined)
      location.replace(toSessionAddress(only.id))
  }, [value])
  if (error !== null) return <Notice text={error} isError />
  if (value === null) return <Notice text="Reading sessions …" />
  return <SessionTable list={value} isTeam={source.team !== null} choice={choice} onChoice={onChoice} />
}

interface Column {
  readonly key: string
  readonly title: string
  readonly isNumber: boolean
  /** Returns the value by which the column is sorted. */
  readonly sortBy: (session: ListedSession) => number | string
  readonly show: (session: ListedSession) => ComponentChildren
}

const COLUMNS: readonly Column[] = [
  {
    key: 'session',
    title: 'Session',
    isNumber: false,
    sortBy: nameSession,
    show: (session) => (
      <>
        <a href={toSessionAddress(session.id)}>{nameSession(session)}</a>
        <small>
          {formatSessionOrigin(session)}
          {session.isLive ? <span class="live-dot">live</span> : null}
        </small>
      </>
    ),
  },
  {
    key: 'started',
    title: 'Started',
    isNumber: false,
    sortBy: ({ startedAt }) => startedAt ?? '',
    show: ({ startedAt }) => formatDateTime(startedAt),
  },
  {
    key: 'program',
    title: 'Program',
    isNumber: false,
    sortBy: ({ format }) => PROGRAM_NAMES[format],
    show: ({ format }) => PROGRAM_NAMES[format],
  },
  {
    key: 'model',
    title: 'Model',
    isNumber: false,
    sortBy: ({ models }) => models[0] ?? '',
    show: ({ models }) => models.map((model) => <span key={model}>{formatModelName(model)}</span>),
  },
  {
    key: 'calls',
    title: 'Calls',
    isNumber: true,
    sortBy: ({ apiCalls }) => apiCalls,
    show: ({ apiCalls }) => apiCalls,
  },
  {
    key: 'peak',
    title: 'Peak',
    isNumber: true,
    sortBy: ({ peakContextTokens }) => peakContextTokens,
    show: ({ peakContextTokens }) => formatTokens(peakContextTokens),
  },
  {
    key: 'compactions',
    title: 'Compacted',
    isNumber: true,
    sortBy: ({ compactions }) => compactions.length,
    show: ({ compactions }) => compactions.length,
  },
  {
    key: 'cost',
    title: 'Cost',
    isNumber: true,
    sortBy: ({ money }) => money.pricedUsd,
    show: ({ costUsd, money }) => formatCost(costUsd, money.pricedUsd),
  },
  {
    key: 'lost',
    title: 'Lost to breaks',
    isNumber: true,
    sortBy: ({ money }) => money.lostToBreaks ?? 0,
    show: ({ money }) => (money.lostToBreaks === null ? '?' : formatDollars(money.lostToBreaks)),
  },
  {
    key: 'wasted',
    title: 'Share lost',
    isNumber: true,
    sortBy: ({ money }) => money.shareLostToBreaks ?? 0,
    show: ({ money }) => <ShareBar share={money.shareLostToBreaks} />,
  },
]

/** A team sees the owner of each session in place of the program, which is always the same. */
const OWNER_COLUMN: Column = {
  key: 'owner',
  title: 'Key',
  isNumber: false,
  sortBy: ({ owner }) => `${owner?.team ?? ''} ${owner?.key ?? ''}`,
  show: ({ owner }) => (
    <>
      <span>{owner?.key}</span>
      {owner?.team == null ? null : <small>{owner.team}</small>}
    </>
  ),
}
const TEAM_COLUMNS = COLUMNS.map((column) => (column.key === 'program' ? OWNER_COLUMN : column))

function ShareBar({ share }: { readonly share: number | null }) {
  if (share === null) return <>?</>
  return (
    <span class="share">
      <meter min={0} max={1} value={share} aria-hidden="true" />
      {formatWholePercent(share)}
    </span>
  )
}

interface Sorting {
  readonly key: string
  readonly isDown: boolean
}

interface SessionTableProps extends ChosenListProps {
  readonly list: SessionList
  readonly isTeam: boolean
}

function SessionTable({ list, isTeam, choice, onChoice }: SessionTableProps) {
  const { filter, sorting } = choice
  const rows = sortSessions(filterSessions(list.sessions, filter), sorting)
  const onSort = (next: Sorting): void => onChoice({ filter, sorting: next })
  return (
    <>
      <div class="head">
        <h1>Sessions</h1>
        <label class="filter">
          <span>Filter</span>
          <input
            type="search"
            placeholder={isTeam ? 'text, id, key, team, model, day' : 'text, folder, model, program, day'}
            value={filter}
            onInput={(event) => onChoice({ filter: event.currentTarget.value, sorting })}
          />
        </label>
      </div>
      {rows.length === 0 ? (
        <Notice text={explainEmptyList(list, isTeam)} />
      ) : (
        <>
          <Totals sessions={rows} pending={list.pending} notRead={list.notRead} isTeam={isTeam} />
          {isTeam ? null : (
            <SpendingGroups sessions={rows} onChoose={(text) => onChoice({ filter: text, sorting })} />
          )}
          <SessionRows
            rows={rows}
            columns={isTeam ? TEAM_COLUMNS : COLUMNS}
            sorting={sorting}
            onSort={onSort}
          />
        </>
      )}
      <ul class="unreadable">
        {list.unreadable.map(({ file, why }) => (
          <li key={file}>{why}</li>
        ))}
      </ul>
    </>
  )
}

function explainEmptyList({ sessions, pending }: SessionList, isTeam: boolean): string {
  if (pending > 0) return `Reading ${formatCount(pending, 'session')} …`
  if (sessions.length > 0) return 'No session has this text.'
  if (isTeam) return 'No session to show.'
  return 'No session of Claude Code, Codex or Tidemark was found. One that begins will be shown here; logs in another place are shown by tidemark ui FILE or DIR.'
}

interface SessionRowsProps {
  readonly rows: readonly ListedSession[]
  readonly columns: readonly Column[]
  readonly sorting: Sorting
  readonly onSort: (sorting: Sorting) => void
}

function SessionRows({ rows, columns, sorting, onSort }: SessionRowsProps) {
  const sort = (key: string): void => onSort({ key, isDown: sorting.key === key ? !sorting.isDown : true })
  return (
    <>
      <SortChoice columns={columns} sorting={sorting} onSort={onSort} />
      <table class="sessions stacks" aria-label="Sessions">
        <thead>
          <tr>
            {columns.map(({ key, title, isNumber }) => (
              <th
                key={key}
                scope="col"
                class={isNumber ? 'number' : ''}
                aria-sort={sorting.key !== key ? 'none' : sorting.isDown ? 'descending' : 'ascending'}
              >
                <button type="button" onClick={() => sort(key)}>
                  {title}
                  <span aria-hidden="true">{sorting.key !== key ? '' : sorting.isDown ? ' ↓' : ' ↑'}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((session) => (
            <SessionRow key={session.id} session={session} columns={columns} />
          ))}
        </tbody>
      </table>
    </>
  )
}

/** A menu for the order, shown where the window is too narrow for the headings of the table. */
function SortChoice({ columns, sorting, onSort }: Omit<SessionRowsProps, 'rows'>) {
  return (
    <label class="choose narrow-only">
      <span>Order by</span>
      <select
        value={sorting.key}
        onChange={({ currentTarget: { value } }) => onSort({ key: value, isDown: true })}
      >
        {columns.map(({ key, title }) => (
          <option key={key} value={key}>
            {title}
          </option>
        ))}
      </select>
    </label>
  )
}

interface SessionRowProps {
  readonly session: ListedSession
  readonly columns: readonly Column[]
}

function SessionRow({ session, columns }: SessionRowProps) {
  return (
    <tr>
      {columns.map(({ key, title, isNumber, show }) => (
        <td
          key={key}
          class={key === 'session' ? 'session first' : isNumber ? 'number' : key}
          data-title={title}
        >
          {show(session)}
        </td>
      ))}
    </tr>
  )
}

function filterSessions(sessions: readonly ListedSession[], filter: string): readonly ListedSession[] {
  const wanted = filter.trim().toLowerCase()
  if (wanted === '') return sessions
  return sessions.filter((session) =>
    [
      nameSession(session),
      formatSessionOrigin(session),
      ...listOwnerTexts(session),
      ...session.models,
      ...session.spending.map(({ day }) => day),
    ]
      .join('\n')
      .toLowerCase()
      .includes(wanted),
  )
}

function listOwnerTexts({ owner, format }: ListedSession): readonly string[] {
  return owner === undefined ? [PROGRAM_NAMES[format]] : [owner.key, owner.team ?? '', owner.session]
}

function sortSessions(
  sessions: readonly ListedSession[],
  { key, isDown }: Sorting,
): readonly ListedSession[] {
  const column = TEAM_COLUMNS.concat(COLUMNS).find((each) => each.key === key)
  if (column === undefined) return sessions
  const sign = isDown ? -1 : 1
  return sessions.toSorted((one, other) => {
    const [a, b] = [column.sortBy(one), column.sortBy(other)]
    return a === b ? 0 : a < b ? -sign : sign
  })
}

interface TotalsProps {
  readonly sessions: readonly ListedSession[]
  readonly pending: number
  readonly notRead: number
  readonly isTeam: boolean
}

/** Shows what the listed sessions cost together, and where the money went. */
function Totals({ sessions, pending, notRead, isTeam }: TotalsProps) {
  const cost = sessions.reduce((sum, { money }) => sum + money.pricedUsd, 0)
  const unpriced = sessions.filter(({ costUsd }) => costUsd === null).length
  const parts = listSpendingParts(sessions)
  const told = formatSpendingParts(parts)
  return (
    <>
      <p class="headline" role="status">
        {`${unpriced === 0 ? '' : 'At least '}${formatDollars(cost)} for ${formatCount(sessions.length, 'session')}`}
        {unpriced === 0 ? '' : ` (${unpriced} with calls of unknown price)`}
        {told === '' ? '' : `: ${told}`}.
      </p>
      <SpendingBar parts={parts} />
      {pending + notRead === 0 ? null : (
        <p class="lead">
          {pending > 0 ? `Reading ${formatCount(pending, 'more session')} … ` : ''}
          {notRead > 0
            ? `${formatCount(notRead, 'older session')} not ${isTeam ? 'listed' : 'read: --limit 0 reads all'}.`
            : ''}
        </p>
      )}
    </>
  )
}
