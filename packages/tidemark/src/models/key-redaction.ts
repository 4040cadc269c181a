/**
 * Removes the key of a model from texts, in plain form and in base64, so that no tool output or error carries it into
 * the conversation, the log or the output.
 */
import type { ReplyEvent } from '@tidemark/core/engine/reply'
import { REDACTED, redactStrings } from '@tidemark/core/text/redact'

type HideKey = (text: string) => string

/** Shorter keys, such as those of a simulator, are not removed, because they could be an ordinary word. */
const SHORTEST_KEY = 12

/** Returns a function that replaces the key in a text wherever it occurs. Keys of fewer than 12 characters are not replaced. */
export function createKeyRedactor(key: string): HideKey {
  if (key.length < SHORTEST_KEY) return (text) => text
  const forms = [escapePattern(key), ...[0, 1, 2].map((place) => formatBase64Pattern(key, place))]
  const pattern = new RegExp(forms.join('|'), 'g')
  return (text) => text.replace(pattern, REDACTED)
}

function escapePattern(text: string): string {
  return text.replace(
    /[^A-Za-z0-9]/g,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/**
 * Returns a pattern for the key as part of a longer base64 text. `place`: 0, 1 or 2 bytes between the start of a group
 * of three and the key. Characters at the ends that also encode neighbouring bytes are left out. Lines may be wrapped
 * anywhere, and both base64 alphabets match.
 */
function formatBase64Pattern(key: string, place: number): string {
  const bytes = Buffer.concat([Buffer.alloc(place), Buffer.from(key)])
  const own = bytes.toString('base64').slice(Math.ceil((place * 8) / 6), Math.floor((bytes.length * 8) / 6))
  return [...own]
    .map((character) => ({ '+': '[+-]', '/': '[/_]' })[character] ?? character)
    .join('(?:\\r?\\n)?')
}

/** Returns an event of a reply whose failure does not contain the key. A reply is never changed. */
export function hideKeyInFailure(event: ReplyEvent, hide: HideKey): ReplyEvent {
  return event.type === 'reply-failed' ? { ...event, failure: redactStrings(event.failure, hide) } : event
}
