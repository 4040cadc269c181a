/**
 * The money of keys in Postgres. Dollars are reserved before a call and settled after it, each in one statement, so
 * that a budget holds across all processes. Reservations of a process that died are charged in full.
 */
import { randomUUID } from 'node:crypto'
import { type Database, queryPromptly } from '../database/database.ts'
import { buildPeriodStartSql, type GatewayKey } from '../keys/keys.ts'
import type { CallCost } from './call-price.ts'

/** Share of a budget at which its key gets a warning. */
export const WARNING_SHARE = 0.8

export interface Reservation {
  readonly id: string
  /** Dollars that are reserved. */
  readonly amount: number
  /** Dollars spent in the period before this call, including reservations of running calls. */
  readonly spent: number
}

/** Reserves dollars for a call. Returns null if the budget is too small or the key was revoked. */
export async function reserveCall(
  pool: Pick<Database, 'query'>,
  key: GatewayKey,
  call: { readonly amount: number; readonly model: string; readonly process: string },
): Promise<Reservation | null> {
  const id = randomUUID()
  const { rows } = await queryPromptly(
    pool,
    `with owner as (
       select id, budget, ${buildPeriodStartSql('period')} as today from gateway_keys where id = $1 and revoked_at is null
     ), held as (
       insert into gateway_spending as s (key, period, reserved)
       select id, today, $3::numeric from owner where budget is null or budget >= $3::numeric
       on conflict (key, period) do update set reserved = s.reserved + excluded.reserved
       where (select budget is null or s.spent + s.reserved + excluded.reserved <= budget from owner)
       returning s.period, s.spent + s.reserved - $3::numeric as spent
     ), call as (
       insert into gateway_calls (id, key, period, process, model, reserved)
       select $2::uuid, $1, period, $4::uuid, $5, $3::numeric from held
     ) select spent from held`,
    [key.id, id, call.amount.toFixed(10), call.process, call.model.slice(0, 200)],
    'reserve-call',
  )
  return rows[0] === undefined ? null : { id, amount: call.amount, spent: Number(rows[0].spent) }
}

export interface SpendingAfterCall {
  /** Dollars spent in the period after this call. */
  readonly spent: number
  readonly budget: number | null
  /** True once in each period: when the spending reaches the warning share. */
  readonly isWarning: boolean
}

/**
 * Replaces a reservation by the cost of the call, and marks the budget as warned if this call reaches the warning
 * share. May be called again for the same id: the newest cost replaces the one before. Null if there is no such call.
 */
export async function settleCall(
  pool: Pick<Database, 'query'>,
  id: string,
  { cost, isEstimated, input, cacheRead, cacheWrite, output }: CallCost,
): Promise<SpendingAfterCall | null> {
  const { rows } = await pool.query({
    name: 'settle-call',
    text: `with before as (select * from gateway_calls where id = $1 for update), done as (
       update gateway_calls c set settled_at = now(), cost = $2::numeric, is_estimated = $3,
         input = $4, cache_read = $5, cache_write = $6, output = $7
       from before where c.id = before.id
     ) update gateway_spending s set spent = s.spent + $2::numeric - coalesce(before.cost, 0),
         reserved = s.reserved - case when before.settled_at is null then before.reserved else 0 end
       from before where s.key = before.key and s.period = before.period
       returning s.key, s.period, s.spent, s.warned_at,
         (select budget from gateway_keys k where k.id = s.key) as budget`,
    values: [id, cost.toFixed(10), isEstimated, input, cacheRead, cacheWrite, output],
  })
  const [row] = rows
  if (row === undefined) return null
  const [spent, budget] = [Number(row.spent), row.budget === null ? null : Number(row.budget)]
  const isReached = budget !== null && spent >= budget * WARNING_SHARE && row.warned_at === null
  return { spent, budget, isWarning: isReached && (await markWarned(pool, row.key, row.period)) }
}

async function markWarned(pool: Pick<Database, 'query'>, key: string, period: Date): Promise<boolean> {
  const { rowCount } = await pool.query(
    'update gateway_spending set warned_at = now() where key = $1 and period = $2 and warned_at is null',
    [key, period],
  )
  return rowCount === 1
}

/** Records that a process is alive now. If that is a minute ago, other processes settle its calls. */
export async function recordProcessAlive(pool: Pick<Database, 'query'>, process: string): Promise<void> {
  await pool.query(
    'insert into gateway_processes (id) values ($1) on conflict (id) do update set seen_at = now()',
    [process],
  )
}

/** Seconds without a sign of life after which a process counts as dead. */
const DEAD_AFTER_SECONDS = 60

/**
 * Settles the calls of dead processes at the reserved amount, because their real cost is unknown. Returns their number.
 * If such a process is alive after all, its own settlement replaces this one.
 */
export async function settleAbandonedCalls(pool: Pick<Database, 'query'>): Promise<number> {
  const { rows } = await pool.query(
    `with dead as (
       update gateway_calls c set settled_at = now(), cost = c.reserved, is_estimated = true
       where c.settled_at is null and not exists (
         select 1 from gateway_processes p where p.id = c.process and p.seen_at > now() - make_interval(secs => $1)
       ) returning c.key, c.period, c.reserved
     ), sums as (
       select key, period, sum(reserved) as amount, count(*) as calls from dead group by key, period
     ), moved as (
       update gateway_spending s set spent = s.spent + sums.amount, reserved = s.reserved - sums.amount
       from sums where s.key = sums.key and s.period = sums.period returning sums.calls
     ) select coalesce(sum(calls), 0)::int as calls from moved`,
    [DEAD_AFTER_SECONDS],
  )
  return Number(rows[0]?.calls ?? 0)
}

/** Seconds after which a reservation that its process does not know counts as lost. Longer than `reserveCall` may take. */
const LOST_AFTER_SECONDS = 30

/**
 * Releases reservations that a living process does not know of: the database stored them, but answered too late, so the
 * calls were never sent. `known`: ids of the calls that the process has reserved and not settled.
 */
export async function releaseLostReservations(
  pool: Pick<Database, 'query'>,
  process: string,
  known: Iterable<string>,
): Promise<void> {
  await pool.query(
    `with lost as (
       update gateway_calls set settled_at = now(), cost = 0, is_estimated = false
       where process = $1 and settled_at is null and id <> all($2::uuid[])
         and started_at < now() - make_interval(secs => $3)
       returning key, period, reserved
     ), sums as (
       select key, period, sum(reserved) as amount from lost group by key, period
     ) update gateway_spending s set reserved = s.reserved - sums.amount
       from sums where s.key = sums.key and s.period = sums.period`,
    [process, [...known], LOST_AFTER_SECONDS],
  )
}
