/**
 * Viewers of the page. A key is exchanged for a cookie, of which only a hash is stored, and which ends with the key.
 * One SQL condition, used by every query of sessions, reports and calls, decides what a viewer may see.
 */
import { createHash } from 'node:crypto'
import { createPageSecret } from '@tidemark/page/server/page-http'
import type { TeamViewer } from 'tidemark/internal'
import { appendAudit } from '../database/audit.ts'
import { type Database, queryPromptly } from '../database/database.ts'
import { findKey } from '../keys/keys.ts'

export interface PageViewer extends TeamViewer {
  /** The id of the key. */
  readonly keyId: string
}

/** Seconds after which a cookie expires. */
export const SIGN_IN_SECONDS = 12 * 3600
/** Maximum cookies of one key; a new one replaces the oldest. */
const MOST_SIGN_INS = 20

/** Exchanges a key for a cookie's value; null for an unknown or revoked key. Viewers of others' sessions are audited. */
export async function signIn(
  pool: Database,
  secret: string,
): Promise<{ readonly cookie: string; readonly viewer: PageViewer } | null> {
  const key = await findKey(pool, secret)
  if (key === null || key.isRevoked) return null
  const cookie = createPageSecret()
  await pool.query(
    `with kept as (
       select hash from gateway_sign_ins where key = $2 and expires_at > now() order by created_at desc limit $4
     ), ended as (
       delete from gateway_sign_ins where expires_at <= now() or (key = $2 and hash not in (select hash from kept))
     ) insert into gateway_sign_ins (hash, key, expires_at) values ($1, $2, now() + make_interval(secs => $3))`,
    [hashCookie(cookie), key.id, SIGN_IN_SECONDS, MOST_SIGN_INS - 1],
  )
  const viewer = toViewer({ id: key.id, name: key.name, team: key.team, is_viewer: key.isViewer })
  if (viewer.sees !== 'own') {
    const subject = viewer.sees === 'team' ? `team ${viewer.team}` : 'all sessions'
    await appendAudit(pool, { actor: key.name, action: 'page-opened', subject })
  }
  return { cookie, viewer }
}

/** Returns the viewer of a cookie; null if it has expired or its key was revoked. */
export async function findViewer(pool: Pick<Database, 'query'>, cookie: string): Promise<PageViewer | null> {
  if (cookie === '') return null
  const { rows } = await queryPromptly(
    pool,
    `select k.id, k.name, k.team, k.is_viewer from gateway_sign_ins s join gateway_keys k on k.id = s.key
     where s.hash = $1 and s.expires_at > now() and k.revoked_at is null`,
    [hashCookie(cookie)],
  )
  return rows[0] === undefined ? null : toViewer(rows[0])
}

/** Deletes the cookie, so that it admits nobody any more. */
export async function signOut(pool: Pick<Database, 'query'>, cookie: string): Promise<void> {
  await pool.query('delete from gateway_sign_ins where hash = $1', [hashCookie(cookie)])
}

function hashCookie(cookie: string): Buffer {
  return createHash('sha256').update(cookie).digest()
}

interface ViewerRow {
  readonly id: string
  readonly name: string
  readonly team: string | null
  readonly is_viewer: boolean
}

function toViewer({ id, name, team, is_viewer }: ViewerRow): PageViewer {
  return { keyId: id, name, team, sees: !is_viewer ? 'own' : team === null ? 'all' : 'team' }
}

/** SQL condition for the rows `k` of `gateway_keys` that a viewer may see. `listVisibilityParameters` gives its $1 to $3. */
export const VISIBLE_KEYS_SQL =
  "(case $1::text when 'all' then true when 'team' then k.team = $3 when 'own' then k.id = $2 else false end)"

/** Returns the values for $1 to $3 of `VISIBLE_KEYS_SQL`. */
export function listVisibilityParameters({ sees, keyId, team }: PageViewer): readonly (string | null)[] {
  return [sees, keyId, team]
}
