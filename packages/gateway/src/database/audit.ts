/** The audit log: who changed keys, deleted sessions or viewed sessions of others, and when. Rows are only added. */
import type { Database } from './database.ts'

interface AuditEntry {
  /** Who acted: the operating system's user who ran a command, `retention`, or the name of a key. */
  readonly actor: string
  readonly action: 'key-added' | 'key-revoked' | 'session-deleted' | 'page-opened'
  /** The name of the key or team, or the key and id of the session. */
  readonly subject: string
  readonly details?: string
}

export async function appendAudit(
  connection: Pick<Database, 'query'>,
  { actor, action, subject, details = '' }: AuditEntry,
): Promise<void> {
  await connection.query(
    'insert into gateway_audit (actor, action, subject, details) values ($1, $2, $3, $4)',
    [actor, action, subject, details],
  )
}

/** Returns the newest entries, the newest first. */
export async function listAudit(
  pool: Database,
  limit: number,
): Promise<readonly (AuditEntry & { readonly at: string })[]> {
  const { rows } = await pool.query(
    'select at, actor, action, subject, details from gateway_audit order by id desc limit $1',
    [limit],
  )
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }))
}
