/**
 * Keys of the gateway: one per consumer, with a budget, a period and a list of models. Only the hash of a key is
 * stored. It is looked up for each request, so that a revoked key stops working at once in every process.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { TidemarkError } from '@tidemark/core/errors'
import { appendAudit } from '../database/audit.ts'
import { type Database, queryPromptly, runTransaction } from '../database/database.ts'

export const PERIODS = ['day', 'week', 'month', 'total'] as const
export type Period = (typeof PERIODS)[number]

export interface GatewayKey {
  /** Id of the key, and the scope of its sessions. */
  readonly id: string
  readonly name: string
  /** Maximum dollars in a period; null for no limit. */
  readonly budget: number | null
  readonly period: Period
  /** Names of the models that may be called; `*` at the end of a name stands for any ending. Null for all models. */
  readonly models: readonly string[] | null
  readonly isRevoked: boolean
  /** The team in whose totals the key is counted; null for none. */
  readonly team: string | null
  /** True if the key cannot call models and only opens the page: with the sessions of its team, or all if it has no team. */
  readonly isViewer: boolean
}

interface NewKey {
  readonly name: string
  readonly budget?: number
  readonly period?: Period
  readonly models?: readonly string[]
  readonly team?: string
  readonly isViewer?: boolean
  readonly actor: string
}

/** Prefix of every key of the gateway. No provider's credential begins with it. */
const KEY_PREFIX = 'tmk_'
const KEY_PATTERN = /^tmk_[\w-]{43}$/
const UNIQUE_VIOLATION = '23505'

/** Adds a key and returns its text, which is not stored. Throws `bad-option` for wrong values and a name in use. */
export async function addKey(
  pool: Database,
  given: NewKey,
): Promise<{ readonly key: string; readonly id: string }> {
  checkNewKey(given)
  const key = `${KEY_PREFIX}${randomBytes(32).toString('base64url')}`
  const id = randomUUID()
  const { budget = null, period = 'month', team = null, isViewer = false, actor } = given
  const name = given.name.normalize()
  // An older gateway on the same tables ignores `is_viewer`. The empty list makes it refuse every model to this key.
  const models = isViewer ? [] : (given.models ?? null)
  try {
    await runTransaction(pool, async (connection) => {
      await connection.query(
        `insert into gateway_keys (id, name, hash, hint, budget, period, models, team, is_viewer)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
        [id, name, hashKey(key), key.slice(0, KEY_PREFIX.length + 4), budget, period, models, team, isViewer],
      )
      const use = isViewer
        ? 'viewer'
        : `budget ${budget ?? 'none'}, period ${period}, models ${models?.join(' ') ?? 'all'}`
      const details = team === null ? use : `${use}, team ${team}`
      await appendAudit(connection, { actor, action: 'key-added', subject: name, details })
    })
  } catch (thrown) {
    if (isObjectWithCode(thrown, UNIQUE_VIOLATION))
      throw badKeyError(`A key named ${name} exists. Revoke it first, or choose another name.`)
    throw thrown
  }
  return { key, id }
}

/** Allows letters of every script, but no characters that change how the text around a name is shown. */
const NAME_PATTERN = /^[\p{L}\p{M}\p{N}_.@ -]{1,100}$/u
const NAME_RULE = 'expected 1 to 100 letters, digits, spaces and . _ - @ characters.'

function checkNewKey({ name, budget, period, models, team, isViewer }: NewKey): void {
  if (!NAME_PATTERN.test(name)) throw badKeyError(`The name ${JSON.stringify(name)}: ${NAME_RULE}`)
  if (team !== undefined && !NAME_PATTERN.test(team))
    throw badKeyError(`--team ${JSON.stringify(team)}: ${NAME_RULE}`)
  if (isViewer === true && (budget !== undefined || models !== undefined))
    throw badKeyError('--viewer: such a key calls no model, so it has no budget and no models.')
  if (budget !== undefined && !(budget > 0 && budget <= 1e9))
    throw badKeyError(`--budget ${budget}: expected dollars above 0.`)
  if (period !== undefined && !PERIODS.includes(period))
    throw badKeyError(`--period ${period}: expected one of ${PERIODS.join(', ')}.`)
  const bad = models?.find((model) => !/^[\w.:/@-]{1,200}\*?$/.test(model))
  if (bad !== undefined || models?.length === 0)
    throw badKeyError(`--models ${bad ?? ''}: expected names of models, such as claude-sonnet-5-5 or gpt-6*.`)
}

function badKeyError(message: string): TidemarkError {
  return new TidemarkError('bad-option', message)
}

function isObjectWithCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code
}

/** Revokes a key by its name. Its sessions and its spending stay. Throws `bad-option` if no key of this name is valid. */
export async function revokeKey(pool: Database, name: string, actor: string): Promise<void> {
  await runTransaction(pool, async (connection) => {
    const { rowCount } = await connection.query(
      'update gateway_keys set revoked_at = now() where name = $1 and revoked_at is null',
      [name.normalize()],
    )
    if (rowCount === 0)
      throw badKeyError(`There is no key named ${JSON.stringify(name)}: see tidemark gateway keys list.`)
    await appendAudit(connection, { actor, action: 'key-revoked', subject: name })
  })
}

export interface ListedKey extends GatewayKey {
  /** The first characters of the key, by which its owner can recognize it. */
  readonly hint: string
  readonly createdAt: string
  /** Dollars of the settled calls in the current period. */
  readonly spent: number
  /** Dollars reserved for running calls in the current period. */
  readonly reserved: number
}

/** Returns all keys, revoked ones and viewers included, the oldest first. */
export async function listKeys(pool: Database): Promise<readonly ListedKey[]> {
  const { rows } = await pool.query(
    `select k.*, coalesce(s.spent, 0) as spent, coalesce(s.reserved, 0) as reserved from gateway_keys k
     left join gateway_spending s on s.key = k.id and s.period = ${buildPeriodStartSql('k.period')} order by k.created_at`,
  )
  return rows.map((row) => ({
    ...toKey(row),
    hint: row.hint,
    createdAt: row.created_at.toISOString(),
    spent: Number(row.spent),
    reserved: Number(row.reserved),
  }))
}

/** Returns SQL for the first day, in UTC, of the current period. `period`: SQL expression for the name of the period. */
export function buildPeriodStartSql(period: string): string {
  return `case ${period} when 'total' then date '1970-01-01'
    else date_trunc(${period}, now() at time zone 'utc')::date end`
}

/** Returns the key with this secret, also if it is revoked or only opens the page; null if there is none. */
export async function findKey(pool: Pick<Database, 'query'>, secret: string): Promise<GatewayKey | null> {
  if (!hasGatewayKeyForm(secret)) return null
  const text = `select id, name, budget, period, models, revoked_at, team, is_viewer from gateway_keys where hash = $1`
  const { rows } = await queryPromptly(pool, text, [hashKey(secret)], 'find-key')
  return rows[0] === undefined ? null : toKey(rows[0])
}

/** True if a text contains a key of the gateway anywhere. */
export function containsGatewayKey(text: string): boolean {
  return /tmk_[\w-]{43}/.test(text)
}

/** True if the whole text has the form of a key of the gateway. The key need not exist. */
export function hasGatewayKeyForm(text: string): boolean {
  return KEY_PATTERN.test(text)
}

/** True if the key may call the model. */
export function allowsModel({ models }: Pick<GatewayKey, 'models'>, model: string): boolean {
  if (models === null) return true
  return models.some((name) => (name.endsWith('*') ? model.startsWith(name.slice(0, -1)) : name === model))
}

/** A fast hash is safe, because keys have 256 random bits. */
function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

interface KeyRow {
  readonly id: string
  readonly name: string
  readonly budget: string | null
  readonly period: Period
  readonly models: readonly string[] | null
  readonly revoked_at: Date | null
  readonly team: string | null
  readonly is_viewer: boolean
}

function toKey({ id, name, budget, period, models, revoked_at, team, is_viewer }: KeyRow): GatewayKey {
  return {
    id,
    name,
    period,
    models,
    team,
    isViewer: is_viewer,
    budget: budget === null ? null : Number(budget),
    isRevoked: revoked_at !== null,
  }
}
