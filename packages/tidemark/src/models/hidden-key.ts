/**
 * Removes the key of a model from texts, as it is and in base64, so that neither a tool nor an error brings it into the
 * conversation, the log or the output.
 */
import type { ReplyEvent } from '@tidemark/core/engine/reply'
import { REDACTED, redactStrings } from '@tidemark/core/text/redact'

type HideKey = (text: string) => string

/** A shorter key, as for a simulator, could be a word of any text. */
const SHORTEST_KEY = 12

/** Returns a function that replaces the key wherever it occurs. */
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
 * Returns a pattern for the key inside a longer text in base64. `place`: by how many bytes the key begins after the start
 * of a group of three. Characters at the ends that also depend on what stands beside the key are left out. Lines may be
 * wrapped anywhere, and both alphabets are matched.
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
