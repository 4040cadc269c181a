/** Which session a request belongs to, for scripts that remember how far they came. */
import { isObject } from '../api.ts'
import type { ScriptRequest } from './script.ts'

export const SESSION_HEADER = 'x-simulator-session'

/** Headers first, then the user id of the metadata; requests that say nothing are one session. */
export function sessionKey({ headers, body }: Pick<ScriptRequest, 'headers' | 'body'>): string {
  const metadata: unknown = body.metadata
  const user = isObject(metadata) && typeof metadata.user_id === 'string' ? metadata.user_id : ''
  return headers[SESSION_HEADER] ?? headers['x-claude-code-session-id'] ?? user
}
