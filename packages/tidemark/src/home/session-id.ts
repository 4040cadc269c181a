/** What a session may be called. Its id is a file name on every system, and never a way out of its folder. */
import { TidemarkError } from '@tidemark/core'
import { show } from './show.ts'

const SHAPE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
/** Windows takes these for devices, whatever follows the first dot. */
const DEVICE = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)/i
/** A session's folder bears the bare id: these would meet another session's log or lock. */
const OUR_ENDINGS = /\.(jsonl|lock)$/i

export function isSessionId(id: unknown): id is string {
  if (typeof id !== 'string' || !SHAPE.test(id)) return false
  return !id.endsWith('.') && !id.includes('..') && !DEVICE.test(id) && !OUR_ENDINGS.test(id)
}

export function checkSessionId(id: unknown): void {
  if (isSessionId(id)) return
  throw new TidemarkError(
    'bad-session-id',
    `${show(id)} cannot be a session id: use 1 to 128 letters, digits, dots, hyphens and underscores, beginning with a letter or digit, without two dots in a row or one at the end, not ending in .jsonl or .lock, and not a device name of Windows (con, nul, com1 …).`,
    { details: { id } },
  )
}
