/**
 * What the keys that a viewer may see spent, by key, team, model and day, and what they lost to cache breaks, by cause. Spending
 * is summed from the settled calls with which keys are charged; losses come from the stored reports of logs.
 */
import type { SpendingRow, TeamCacheLoss, TeamFigures, TeamKeySpending } from 'tidemark/internal'
import type { Database } from '../database/database.ts'
import { listKeys } from '../keys/keys.ts'
import { REPORT_FORMAT_VERSION } from './viewer-sessions.ts'
import { listVisibilityParameters, type PageViewer, VISIBLE_KEYS_SQL } from './viewers.ts'

/** Maximum models listed by name, because names come from clients. */
const MOST_MODELS = 50

/** Returns what the viewer may see of the last `days` days in UTC, today included. `days`: null for all days. */
export async function readTeamFigures(
  pool: Database,
  viewer: PageViewer,
  days: number | null,
): Promise<TeamFigures> {
  const since =
    days === null ? null : new Date(Date.now() - (days - 1) * 86_400_000).toISOString().slice(0, 10)
  const values = [...listVisibilityParameters(viewer), since]
  const [calls, keys, losses, sessions] = await Promise.all([
    pool.query(CALLS, values),
    listVisibleKeys(pool, viewer),
    pool.query(LOSSES, [...values, REPORT_FORMAT_VERSION]),
    pool.query(SESSIONS, [...values, REPORT_FORMAT_VERSION]),
  ])
  const list = (kind: string): readonly SpendingRow[] =>
    calls.rows.filter((row) => row.kind === kind).map(toSpendingRow)
  const [total = EMPTY] = list('total')
  const byKey = new Map(list('key').map((row) => [row.name, row]))
  return {
    since,
    total,
    runningUsd: keys.reduce((sum, { reserved }) => sum + reserved, 0),
    keys: keys
      .map(
        (key): TeamKeySpending => ({ ...EMPTY, ...byKey.get(key.id), ...key, key: key.name, name: key.id }),
      )
      .toSorted(compareSpending),
    teams: list('team').toSorted(compareSpending),
    models: joinRest(list('model').toSorted(compareSpending)),
    days: list('day').toSorted((one, other) => ((one.name ?? '') < (other.name ?? '') ? -1 : 1)),
    losses: losses.rows.map(toLoss),
    sessions: Number(sessions.rows[0]?.sessions ?? 0),
    unread: Number(sessions.rows[0]?.unread ?? 0),
  }
}

/** Returns the keys that the viewer may see. Viewer keys spend nothing and are left out. */
async function listVisibleKeys(pool: Database, { sees, keyId, team }: PageViewer) {
  const keys = await listKeys(pool)
  return keys
    .filter((key) =>
      sees === 'own' ? key.id === keyId : !key.isViewer && (sees === 'all' || key.team === team),
    )
    .map(({ id, name, hint, team: own, budget, period, spent, reserved, isRevoked }) => ({
      ...{ id, name, hint, team: own, budget, period, spent, reserved, isRevoked },
    }))
}

/** Days are in UTC, like the periods of budgets. Only settled calls count, because running calls have no cost yet. */
const CALLS = `
  with calls as (
    select c.*, k.id as key_id, k.team, (c.started_at at time zone 'utc')::date as day
    from gateway_calls c join gateway_keys k on k.id = c.key
    where ${VISIBLE_KEYS_SQL} and c.settled_at is not null
      and ($4::date is null or c.started_at >= $4::date::timestamp at time zone 'utc')
  )
  select case grouping(key_id, team, model, day)
      when 7 then 'key' when 11 then 'team' when 13 then 'model' when 14 then 'day' else 'total' end as kind,
    coalesce(key_id, model, to_char(day, 'YYYY-MM-DD'), team) as name,
    count(*) as calls, sum(cost) as usd, coalesce(sum(cost) filter (where is_estimated), 0) as estimated,
    sum(input) as input, sum(cache_read) as cache_read, sum(cache_write) as cache_write, sum(output) as output
  from calls group by grouping sets ((key_id), (team), (model), (day), ())`

const LOSSES = `
  select l.cause, count(*) as breaks, coalesce(sum(l.usd), 0) as usd, count(*) filter (where l.usd is null) as unpriced
  from gateway_reports r join gateway_keys k on k.id = r.scope
    cross join lateral jsonb_to_recordset(r.losses) as l (cause text, at timestamptz, usd numeric)
  where ${VISIBLE_KEYS_SQL} and r.format = $5
    and ($4::date is null or l.at >= $4::date::timestamp at time zone 'utc')
  group by l.cause order by 3 desc, 2 desc, 1`

const SESSIONS = `
  select count(*) as sessions, count(*) filter (where r.scope is null) as unread
  from gateway_sessions s join gateway_keys k on k.id = s.scope
    left join gateway_reports r on r.scope = s.scope and r.session = s.session and r.format = $5
  where ${VISIBLE_KEYS_SQL} and ($4::date is null or s.used_at >= $4::date::timestamp at time zone 'utc')`

const EMPTY: SpendingRow = {
  name: null,
  calls: 0,
  usd: 0,
  estimatedUsd: 0,
  input: 0,
  cacheRead: 0,
  cacheWrite: 0,
  output: 0,
}

type FigureRow = Readonly<Record<string, unknown>>

function toSpendingRow(row: FigureRow): SpendingRow {
  return {
    name: typeof row.name === 'string' ? row.name : null,
    calls: Number(row.calls),
    usd: Number(row.usd ?? 0),
    estimatedUsd: Number(row.estimated ?? 0),
    input: Number(row.input ?? 0),
    cacheRead: Number(row.cache_read ?? 0),
    cacheWrite: Number(row.cache_write ?? 0),
    output: Number(row.output ?? 0),
  }
}

function toLoss({ cause, breaks, usd, unpriced }: FigureRow): TeamCacheLoss {
  return {
    cause: cause as TeamCacheLoss['cause'],
    breaks: Number(breaks),
    usd: Number(usd),
    unpriced: Number(unpriced),
  }
}

function compareSpending(one: SpendingRow, other: SpendingRow): number {
  return other.usd - one.usd || other.calls - one.calls || ((one.name ?? '') < (other.name ?? '') ? -1 : 1)
}

/** Adds up the rows beyond `MOST_MODELS` in one row. */
function joinRest(rows: readonly SpendingRow[]): readonly SpendingRow[] {
  if (rows.length <= MOST_MODELS) return rows
  const rest = rows.slice(MOST_MODELS - 1).reduce((sum, row) => ({
    name: `${rows.length - MOST_MODELS + 1} others`,
    calls: sum.calls + row.calls,
    usd: sum.usd + row.usd,
    estimatedUsd: sum.estimatedUsd + row.estimatedUsd,
    input: sum.input + row.input,
    cacheRead: sum.cacheRead + row.cacheRead,
    cacheWrite: sum.cacheWrite + row.cacheWrite,
    output: sum.output + row.output,
  }))
  return [...rows.slice(0, MOST_MODELS - 1), rest]
}
